// Package snapshot makes the first copy of a database: all tables as they stood at one point of the source's history.
//
// # How
//
// One session takes the global read lock (FLUSH TABLES WITH READ LOCK). While it is held, each reader opens its read
// view (START TRANSACTION WITH CONSISTENT SNAPSHOT) and the position, the GTID set and the definitions are read; then
// it is released. Under the lock no commit is between the binlog and the engine, so that the views and the position
// agree exactly; without it they do not (design, section 4). Then the readers stream the tables, large ones cut into
// ranges of their key, each row straight from the network into column builders.
//
// # What the source feels
//
//   - The lock is held for milliseconds; Result.LockHeld tells, Config.HoldLimit bounds it.
//   - The lock is not asked for while a statement has been running for longer than Config.LongStatement, and waits no
//     longer than Config.LockWait: the statements of others queue behind a waiting lock. (A SELECT that began within
//     the last second and then runs for longer than LockWait can't be foreseen. The lock is given up, but MySQL has
//     marked the tables that this one SELECT reads, and new statements on them wait for its end.)
//   - A reader holds the metadata lock of a table only while it reads one range of it, not to the end of the copy.
//   - There are Config.Readers + 1 connections. If the source has fewer to give, there are fewer readers.
//   - When the process dies, its connections do, and with them every lock and transaction.
//
// # What is promised
//
// Run either delivers every row of every table of the plan at Result.Point, or fails. A definition that changed since
// the cut is ErrSchemaChanged: the caller drops what it got and starts again. Definition changes after the last range of
// a table was read do no harm to its rows, but they are reported the same way, so that copy and stream begin with the
// definitions of the cut. TRUNCATE counts as such a change.
package snapshot
