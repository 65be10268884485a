// Package snapshot copies tables of a source: all tables of a database at first, or one of them beside a running stream.
//
// # The cut
//
// A copy begins with a cut, made by the plan of package compat. P0, the cut's point, is a lower bound: every row that is
// read holds the transactions up to it. P1 is an upper bound, each table's own. Who follows the stream from P0 on applies
// row events in (P0, P1] whatever is there, and finds behind P1 exactly what they say.
//
//   - global: one session takes FLUSH TABLES WITH READ LOCK. While it is held, each reader opens its read view (START
//     TRANSACTION WITH CONSISTENT SNAPSHOT) and the position, the GTID set and the definitions are read; then it is
//     released. No commit is between the binlog and the engine then, so that views and position agree exactly. Without a
//     lock they do not (design, section 4).
//   - tables: the same under LOCK TABLES ... READ of the wanted base tables alone. It is exact for these tables, and only
//     for them: a transaction that has written to one of them holds a metadata lock on it until its commit has ended, in
//     the binlog, in the engine and in gtid_executed, in this order. So once the lock is there, no such transaction is
//     under way, all that were are in the views and in front of the position, and all that follow are behind it.
//     Transactions that only touch other tables may stand on either side. A table created between the listing and the lock
//     is not locked: then the cut is made anew. The tables are locked in one statement however many they are, as a second
//     LOCK TABLES lets go of what the first has locked. (A transaction that waits for one of them while it holds another may
//     be ended by MySQL as a deadlock.) A prepared XA transaction keeps its metadata locks.
//   - none: no lock. P0 is read before the first view: with GTIDs @@gtid_executed, which a commit enters after the
//     engine; without, the start of the binlog file of then, as MySQL begins a new file only when all transactions of the
//     old ones are committed. P1 is the end of the binlog, read behind a table's last chunk: a commit is in the binlog before any
//     view can show it.
//
// With each of them there must have been a moment without prepared XA transactions behind P0 and before the first view:
// their PREPARE is in the set and in front of the position, and their rows are in no view.
//
// # Chunks
//
// A table is read in chunks: statements with a LIMIT, in the order of the key, each from the last key of the one before. So
// no estimate has to be right, and statistics however stale make neither giant nor tiny chunks. A reader that has nothing
// to do is given half of what is left of another's stretch. The middle is found by value: between the first and the last
// key, by halving, with the optimizer's estimates of both sides, which cost a look at a few index pages each. All types of
// key columns that can be compared by a literal are: integers, ENUM and SET (as numbers; their ranges are lists where they
// have few values, since the optimizer uses no index for anything but equality there, and are slow to reach where they
// have many), BIT, DECIMAL, FLOAT and DOUBLE, temporal types, text under its collation, bytes. Read in one piece are tables
// without a key, those whose key's index has only the beginning of a column, and what follows a key whose text is not
// valid in its character set.
//
// Each finished chunk is given to the sink with a note (Writer.Done). A copy that broke off goes on with the notes
// (Config.Resume): what no chunk covers is read, as without a lock, from the same P0. The chunks in flight, which are read
// twice then, are together about a fortieth of a large table.
//
// Without a lock each chunk has a view of its own. Rows behind what was a table's last key when its reading began are of
// transactions behind P0, and are left to the stream. After a lock, a reader keeps its view as long as it lives: until its
// connection is lost, or the view gets older than Limits.ViewAge, or InnoDB's history list longer than
// Limits.HistoryLength. Then it goes on without, and tables of which it read on have a window.
//
// A table without a key has rows that can't be told apart, so that a window does not do. Without a lock it is read in one
// view between two bounds, From and To, and is right if none of its row events lies between them (TableResult.Bracket).
// Where LOCK TABLES is granted, this one table is locked while the view is opened, and nothing can be between them.
//
// # What can go wrong
//
// A connection that is lost, a statement that is killed or times out, a table that is locked by others: the chunk is read
// again, with pauses, for as long as Config.Retry; a result counts only with the server's own end packet. A
// reader for which the source has no connection any more retires; the last one does not. Behind P1 the definitions, the
// moments of creation and InnoDB's table ids are compared with those of the cut. A table that was altered, truncated,
// dropped or exchanged is TableResult.Changed, and the others are fine. A change between the last chunk and the comparison
// does no harm, but looks the same.
//
// # What the source feels
//
//   - The lock is held for milliseconds; Cut.LockHeld tells, Config.HoldLimit bounds it.
//   - The global lock is not asked for while a statement has been running for longer than Config.LongStatement, that on
//     tables not while a transaction that has written to one of them has been open for longer. Both wait no longer than
//     Config.LockWait: the statements of others queue behind a waiting lock. (A SELECT that began within the last second
//     and then runs for longer than LockWait can't be foreseen. The global lock is given up, but MySQL has marked the
//     tables that this one SELECT reads, and new statements on them wait for its end.)
//   - The metadata lock of a table ends with the statement that reads a chunk of it, or with the rollback to a savepoint
//     right behind it, before the rows are stored. When others wait for a metadata lock for longer than Limits.LockWaits,
//     chunks that take as long end at their next row; if no row comes, their session is ended after twice that time.
//   - There are Config.Readers + 1 connections. If the source has fewer to give, there are fewer readers.
//   - Beyond Config.RowsPerSecond all readers wait. While the source is busy beyond Limits, one reader works at a time, and
//     rests after each chunk for as long as it took: slow, but it comes to an end. Config.Slowed tells.
//   - When the process dies, its connections do, and with them every lock and transaction.
//
// In memory each reader has one batch and one row; tables of rows beyond 2 MiB are read by one reader at a time.
package snapshot
