// Package storage is the store: materialized tables as immutable Parquet parts and fresh segments, a unique key index
// over them, and one atomic, durable commit for rows, definitions and the source position that produced them. It knows
// nothing of MySQL's protocol.
//
// # Contract
//
//  1. A commit is all or nothing, also across a crash at any instruction: [Txn.Commit] returns nil only when
//     everything in it is durable; after a crash the store stands at the last acknowledged commit, or at the one that was
//     in flight, whole.
//  2. A [Version] shows one commit. It never changes, and its files stay until it is released.
//  3. A key names at most one live row of a table. An operation whose expectation does not hold changes nothing
//     ([DivergenceError]).
//  4. Identities (databases, tables, generations, parts, segments) are never reused.
//  5. Background work (flush, merge, index maintenance) never changes what a reader sees.
//  6. What a checkpoint of a bulk load has made durable is there after a crash, whole, and nothing else of the load.
//
// The layout on disk and its crash story are in DESIGN.md beside this file, the formats to the byte in docs/format.
package storage
