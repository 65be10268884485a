package ddl

import "slices"

// ignoredVerbs start statements that change no rows of tables and no definitions, or only those of accounts, the
// server and the session. ANALYZE and the like are logged, and leave the rows as they are.
var ignoredVerbs = []string{
	"ANALYZE", "BEGIN", "BINLOG", "CACHE", "CHANGE", "CHECK", "CHECKSUM", "CLONE", "COMMIT", "DEALLOCATE", "DESC", "DESCRIBE",
	"EXPLAIN", "FLUSH", "GET", "GRANT", "HELP", "INSTALL", "KILL", "LOCK", "OPTIMIZE", "PREPARE", "PURGE", "RELEASE",
	"RESET", "RESTART", "REVOKE", "ROLLBACK", "SAVEPOINT", "SET", "SHOW", "SHUTDOWN", "SIGNAL", "START", "STOP", "UNINSTALL",
	"UNLOCK", "USE", "XA",
}

// ignoredObjects are kinds of objects that hold no rows of base tables.
var ignoredObjects = []string{
	"EVENT", "FUNCTION", "INSTANCE", "LIBRARY", "LOGFILE", "PREPARE", "PROCEDURE", "REFERENCE", "RESOURCE", "ROLE", "SERVER",
	"TABLESPACE", "TRIGGER", "USER", "VIEW",
}

// modifiers may stand between CREATE, ALTER or DROP and the kind of the object.
var modifiers = []string{
	"AGGREGATE", "DUALITY", "EXTERNAL", "FULLTEXT", "IGNORE", "JSON", "MATERIALIZED", "OFFLINE", "ONLINE", "RELATIONAL",
	"SPATIAL", "UNDO", "UNIQUE",
}

func (s *statement) apply() ([]Effect, error) {
	p := &parser{s: s}
	verb := p.peek()
	switch {
	case verb.kind == tokEnd, p.atEnd():
		return nil, nil
	case p.oneOf(ignoredVerbs...) != "":
		return nil, nil
	case verb.is("CREATE"), verb.is("ALTER"), verb.is("DROP"):
		p.take()
		return s.definition(p, verb)
	case p.word("TRUNCATE"):
		return barrier(s.truncate(p))
	case p.word("RENAME"):
		return barrier(s.rename(p))
	case p.word("REPAIR"):
		return s.repair(p)
	}
	return s.dml(p)
}

// barrier marks the effects of a statement for which the server takes an exclusive metadata lock on the tables that it
// changes (MySQL Reference Manual, "Metadata Locking").
func barrier(effects []Effect, err error) ([]Effect, error) {
	for i := range effects {
		effects[i].Barrier = effects[i].Op != Charset
	}
	return effects, err
}

// definition takes CREATE, ALTER and DROP up to the kind of object.
func (s *statement) definition(p *parser, verb token) ([]Effect, error) {
	for {
		switch {
		case p.word("OR", "REPLACE"), p.oneOf(modifiers...) != "", p.ifNotExists(), p.ifExists():
		case p.word("ALGORITHM"):
			p.value()
		case p.word("SQL", "SECURITY"):
			p.take()
		case p.word("DEFINER"):
			s.definer(p)
		case p.word("TEMPORARY"):
			return nil, nil // another session's, and never in row events
		case p.oneOf(ignoredObjects...) != "":
			return nil, nil
		case p.oneOf("DATABASE", "SCHEMA") != "":
			return barrier(s.database(p, verb))
		case p.oneOf("TABLE", "TABLES") != "":
			return barrier(s.table(p, verb))
		case p.word("INDEX"):
			return barrier(s.index(p, verb))
		default:
			return s.unknown("a statement of unknown kind can't be followed")
		}
	}
}

// definer takes = account, where the account may be CURRENT_USER().
func (s *statement) definer(p *parser) {
	p.punct('=')
	p.take()
	if p.punct('(') {
		p.punct(')')
	}
	if p.peek().kind == tokVariable {
		p.take()
	}
}

func (s *statement) table(p *parser, verb token) ([]Effect, error) {
	switch {
	case verb.is("CREATE"):
		return s.createTable(p)
	case verb.is("ALTER"):
		return s.alterTable(p)
	default:
		return s.dropTables(p)
	}
}

// failed deals with a statement of which only the tables that it touches were understood.
func (s *statement) failed(p *parser, targets ...tableName) ([]Effect, error) {
	if len(targets) == 0 || targets[0].table == "" {
		return s.unknown("a statement can't be read (" + p.err.Error() + ")")
	}
	var out []Effect
	for _, n := range targets {
		out = append(out, s.quarantine(n, "a statement can't be read (%v)", p.err)...)
	}
	return out, nil
}

func (s *statement) dropTables(p *parser) ([]Effect, error) {
	p.ifExists()
	names := p.tableNames()
	p.oneOf("RESTRICT", "CASCADE")
	if p.err == nil && !p.atEnd() {
		p.unexpected("the end")
	}
	if p.err != nil {
		return s.failed(p, names...)
	}
	var out []Effect
	for _, n := range names {
		if name, _, _, ok := s.lookup(n); ok {
			out = append(out, Effect{Op: Drop, Table: name})
		}
	}
	return out, nil
}

func (s *statement) truncate(p *parser) ([]Effect, error) {
	p.word("TABLE")
	n := p.tableName()
	if p.err == nil && !p.atEnd() {
		p.unexpected("the end")
	}
	if p.err != nil {
		return s.failed(p, n)
	}
	name, _, live, ok := s.lookup(n)
	if !ok || !live {
		return nil, nil
	}
	return []Effect{{Op: Truncate, Table: name}}, nil
}

func (s *statement) repair(p *parser) ([]Effect, error) {
	p.oneOf("NO_WRITE_TO_BINLOG", "LOCAL")
	if p.oneOf("TABLE", "TABLES") == "" {
		return s.unknown("a statement of unknown kind can't be followed")
	}
	return s.quarantineAll(p.tableNames(), "REPAIR TABLE may remove rows, which is not logged"), nil
}

func (s *statement) quarantineAll(names []tableName, reason string) []Effect {
	var out []Effect
	for _, n := range names {
		if _, _, _, known := s.lookup(n); known {
			out = append(out, s.quarantine(n, "%s", reason)...)
		}
	}
	return out
}

// rename takes RENAME TABLE a TO b, c TO d. A renamed table can't be followed yet; a table that comes in from
// elsewhere holds rows that are not known.
func (s *statement) rename(p *parser) ([]Effect, error) {
	if p.word("USER") {
		return nil, nil
	}
	if p.oneOf("TABLE", "TABLES") == "" {
		return s.unknown("a statement of unknown kind can't be followed")
	}
	var pairs [][2]tableName
	for p.err == nil {
		from := p.tableName()
		if p.oneOf("TO", "AS", "=") == "" {
			p.unexpected("TO")
		}
		pairs = append(pairs, [2]tableName{from, p.tableName()})
		if !p.punct(',') {
			break
		}
	}
	if p.err == nil && !p.atEnd() {
		p.unexpected("the end")
	}
	if p.err != nil {
		return s.unknown("a RENAME can't be read (" + p.err.Error() + ")")
	}
	var out []Effect
	for _, pair := range pairs {
		more := s.renameTable(pair[0], pair[1], out)
		// A name that came in the statement and goes again, such as that of a swap, is none that stays.
		out = slices.DeleteFunc(out, func(e Effect) bool { return e.Def != nil && s.sameName(e.Table, pair[0].table) })
		out = append(out, more...)
	}
	return dedupe(out), nil
}

// renameTable gives the effects of one renaming; before are those of the same statement so far.
func (s *statement) renameTable(from, to tableName, before []Effect) []Effect {
	const reason = "renaming a table is not supported yet"
	out := s.quarantineAll([]tableName{from}, reason)
	_, _, _, known := s.lookup(from)
	// A name of the followed database that the filters let through and that is not a table is a view.
	isView := s.followed(from) && !known && !slices.ContainsFunc(before, func(e Effect) bool { return s.sameName(e.Table, from.table) })
	if isView {
		return out
	}
	if _, _, _, taken := s.lookup(to); taken {
		return append(out, s.quarantine(to, reason)...)
	}
	return append(out, s.placeholder(to, "the table came by a renaming, which is not supported yet")...)
}

// database takes CREATE, ALTER and DROP DATABASE.
func (s *statement) database(p *parser, verb token) ([]Effect, error) {
	p.ifExists()
	p.ifNotExists()
	name := s.st.Database
	if t := p.peek(); t.kind == tokQuoted || t.kind == tokWord && !s.databaseOption(t) {
		name = p.take().text
	}
	if !s.sameDatabase(name) {
		return nil, nil
	}
	if verb.is("DROP") {
		var out []Effect
		for _, t := range s.catalog.Tables() {
			out = append(out, Effect{Op: Drop, Table: t})
		}
		return append(out, Effect{Op: Charset}), nil
	}
	return s.databaseCharset(p, verb.is("CREATE"))
}

// databaseOption tells a word that starts an option where the name may be left out (ALTER DATABASE).
func (s *statement) databaseOption(t token) bool {
	return t.is("DEFAULT") || t.is("CHARACTER") || t.is("CHARSET") || t.is("COLLATE") || t.is("ENCRYPTION") || t.is("READ") || t.is("UPGRADE")
}

// databaseCharset follows the database's defaults, which tables created later inherit.
func (s *statement) databaseCharset(p *parser, create bool) ([]Effect, error) {
	charset, collation := s.catalog.Charset()
	exists := charset != ""
	if create && exists {
		return nil, nil // IF NOT EXISTS
	}
	changed := false
	for p.err == nil && !p.atEnd() {
		p.word("DEFAULT")
		switch {
		case p.charsetWord():
			charset, changed = s.charsetName(p.value().text), true
			collation = s.defaultCollation(charset)
		case p.word("COLLATE"):
			collation, changed = s.collationName(p.value().text), true
			charset = s.charsetOf(collation)
		case p.word("ENCRYPTION"), p.word("READ", "ONLY"):
			p.value()
		default:
			p.unexpected("a database option")
		}
	}
	if p.err != nil {
		return nil, &UnknownError{Statement: s.quote(), Reason: "a change of the database's defaults can't be read (" + p.err.Error() + ")"}
	}
	if !changed && create {
		if collation = s.serverCollation(); collation == "" {
			return nil, &UnknownError{Statement: s.quote(), Reason: "the database was created anew with the server's default character set, which is not known here"}
		}
		charset, changed = s.charsetOf(collation), true
	}
	if !changed {
		return nil, nil
	}
	return []Effect{{Op: Charset, Charset: charset, Collation: collation}}, nil
}
