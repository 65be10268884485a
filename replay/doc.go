// Package replay makes commits out of source transactions: it folds their row events to one change a key, follows their
// DDL, and decides what one commit holds. It is a pure core: transactions and the last committed [State] go in, and what
// has to be done goes to a [Target], which in the server is a transaction of the store.
//
// # Contract
//
//  1. [Replayer.Apply] takes whole transactions in the source's order. What they do and the point behind them go into
//     the same commit. When it returns an error, [Replayer.State] says up to where they are committed.
//  2. Fold: in event order, each row event yields delete(key before), then put(key after). The last operation of a key
//     wins; the first one says whether the key must be there. A target that finds it otherwise reports a divergence.
//  3. Never skip: an event of a followed table whose effect is not known quarantines the table, in a commit that holds
//     exactly the transactions in front of the one with that event; the other tables go on. Where the table can't be
//     told, Apply ends with a [*StopError], with everything in front of it committed.
//  4. A table's DDL is a barrier: rows in front of it are decoded and applied under the definition before it, rows
//     behind it under the one it makes.
//  5. Window: inside a table's [Window] its changes are tolerant, behind it strict, also within one batch. What quarantines
//     a table inside makes its copy worthless.
//  6. Memory is bounded by the budget, not by the transaction: what exceeds it goes to the target in slices of the
//     same commit.
//
// How a fault is pinned to its transaction: transactions are folded together, so a divergence shows only for the batch.
// The batch is then taken back and carried out in halves until the fault comes up again, alone; its table is quarantined
// and the transaction done again without it. That costs one slow batch a fault and nothing otherwise.
package replay
