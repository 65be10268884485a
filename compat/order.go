package compat

// What a window without a lock rests on (docs/design.md, section 4):
//
//	P0: a transaction whose GTID is in gtid_executed is visible to every read view that is opened later;
//	P1: a transaction that a read view sees is in front of the end of the binlog, if that is asked for later;
//	P0 without GTIDs: transactions of older binlog files are visible to every later read view.
//
// From the source of MySQL 5.7 to 9.7 (sql/binlog.cc, MYSQL_BIN_LOG::ordered_commit): a group is written to the binlog in
// the flush stage, then committed in the engines, and only then are its GTIDs added to gtid_executed; rotation waits until
// nobody is between the two. binlog_order_commits = OFF lets the members of a group commit in the engine in any order, but
// each still behind the flush and in front of its GTID: sets know no order, and the end of the binlog is behind them all.
// sync_binlog changes when the file is synced, not when it is written. binlog_group_commit_sync_delay sits in front of the
// engine commit. replica_preserve_commit_order = OFF concerns the order in which a replica's groups come about, not what
// happens inside of one.

// orderProblem says why the order does not hold, "" where it does.
func (s *Source) orderProblem() string {
	if s.EnhancedBinlog {
		return s.quirk().commitOrder
	}
	return ""
}
