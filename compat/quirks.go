package compat

// quirk is what we know of a product beyond what it says of itself. Nothing else in this package asks for a flavour.
// manual names the page on which a rule rests; only MySQL 9.7 is run by our tests, all else is from the manual.
type quirk struct {
	// refused is why the product can't be a source at all, and instead what to use; "" where it can.
	refused, instead string
	// blindLock tells that SHOW GRANTS shows RELOAD where the vendor does not let customers take the global lock: it
	// has to be tried.
	blindLock bool
	// readersLog is false where a reader (see Source.Reader) has no binlog, whatever it says.
	readersLog bool
	// commitOrder is "" where a transaction is in the binlog before the engine commits it, and in gtid_executed only
	// after that; windows without a lock rest on both. Else it is why that is not certain (see Source.orderProblem).
	commitOrder string
	// vendorRetention tells that mysql.rds_configuration decides how long binlogs are kept, and not the server's variables.
	vendorRetention bool
	// noRetention is what a retention that is not set means: true where files go as soon as the vendor does not need them.
	noRetention bool
	// gtidSteps tells that gtid_mode goes from one value to the next only, by hand.
	gtidSteps bool
	// setting makes the remedy for a server variable; logOff for a binlog that is off; keepLogs for one kept for too short.
	setting  func(s *Source, name, value string) remedy
	logOff   func(s *Source) remedy
	keepLogs func(s *Source) remedy
}

// remedy is what to do about a problem: in words, and as statements or commands to run in this order.
type remedy struct {
	do         string
	statements []string
	manual     string
}

// quirks is everything that depends on the product.
var quirks = map[Flavour]quirk{
	MySQL:   {readersLog: true, gtidSteps: true, setting: persist, logOff: logBin, keepLogs: expireSeconds},
	Percona: {readersLog: true, gtidSteps: true, setting: persist, logOff: logBin, keepLogs: expireSeconds},
	// From the manual: Amazon RDS, "Master user account privileges": RELOAD is granted, SUPER is not; FLUSH TABLES WITH
	// READ LOCK then fails with error 1045 (CLOUD-01). Amazon RDS, "Setting and showing binary log configuration": NULL,
	// the default of 'binlog retention hours', means that binlogs are not kept.
	RDS: {readersLog: true, blindLock: true, vendorRetention: true, noRetention: true, setting: parameterGroup, logOff: rdsBackups, keepLogs: rdsRetention},
	// From the manual: Amazon Aurora, "Setting up enhanced binlog for Aurora MySQL": with it the binlog and the
	// transaction log are written to storage in parallel. "Configuring Aurora MySQL binary logging": binlogs are to be had from
	// the primary only (CLOUD-06).
	Aurora: {blindLock: true, vendorRetention: true, noRetention: true,
		commitOrder: "Aurora's enhanced binlog (aurora_enhanced_binlog) writes the binlog and the engine's log in parallel, so that no position read without a lock is a safe bound",
		setting:     clusterParameterGroup, logOff: auroraBinlog, keepLogs: rdsRetention},
	CloudSQL: {readersLog: true, blindLock: true, setting: databaseFlag, logOff: cloudSQLRecovery, keepLogs: cloudSQLRetention},
	// From the manual: Azure Database for MySQL, "Server parameters": with binlog_expire_logs_seconds = 0, the default,
	// a binlog is deleted as soon as nothing has it open.
	Azure: {readersLog: true, gtidSteps: true, blindLock: true, noRetention: true, setting: azureParameter, logOff: azureBinlog, keepLogs: azureRetention},
	MariaDB: {refused: "which has GTIDs and binlog events of its own",
		instead: "use a MySQL 5.7.20 or later server as the source"},
	Vitess: {refused: "which gives no binlog", instead: "use the MySQL servers behind it as sources"},
	TiDB:   {refused: "which has no binlog of MySQL's kind", instead: "use a MySQL 5.7.20 or later server as the source"},
	Other:  {refused: "which has no binlog of MySQL's kind", instead: "use a MySQL 5.7.20 or later server as the source"},
}

func (s *Source) quirk() quirk { return quirks[s.Flavour] }
