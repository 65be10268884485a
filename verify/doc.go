// Package verify compares a materialized database with its source, row by row, at one point, without a lock.
//
// # How
//
// A pair is a read view on the source and a version of ours: the view is opened first, then E, the end of the source's
// binlog, is read, and then our version is pinned as soon as it holds everything up to E. (The binlog is written before
// the engine commits, so nothing behind E is in the view.) A transaction that came between the view and the version is
// in ours and not in the view; all other rows must be equal.
//
// Each table is read once on both sides, in any order, and every row is hashed with all its values, under a secret of
// this run, into one of 65536 buckets by its key. Buckets of equal count and sum are equal. Of the others the rows are
// read again at a later pair, and the keys that then differ are asked for by key, again and again at later pairs, until
// they are equal, or are proven to differ: nothing at all happened on the source between two pairs, or both sides stayed
// as they are over several pairs and differ still. A key that changes all the time stays undecided.
//
// A table without a key is compared as a multiset: the bucket of a row follows from all its values, and of buckets that
// differ the rows are counted by their hash (see column.RowHashLen). Where counts differ at the later pair, both sides are
// read as a whole again for each further look, as neither can be asked for such rows.
//
// Comparing in key order with one lookup a row was the other way. It reads our parts at random: the source sorts text
// by collation and our parts by bytes.
//
// Hashes are of 64 bits and of a fresh random secret: that a damaged row goes unseen has a chance of 2^-64.
package verify
