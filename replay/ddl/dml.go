package ddl

import "fmt"

// dml takes changes of rows that were logged as text and not as row events: a session with binlog_format STATEMENT or
// MIXED, or a source that is itself a replica of such a server. Their effect can't be known here. Neither the text nor
// anything of it but the verb is put into messages, since it holds row values.
func (s *statement) dml(p *parser) ([]Effect, error) {
	verb := p.take()
	switch {
	case verb.is("INSERT"), verb.is("REPLACE"):
		p.oneOf("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY")
		p.word("IGNORE")
		p.word("INTO")
		return s.changed(verb, []tableName{p.tableName()}, p)
	case verb.is("DELETE") && s.singleDelete(p):
		return s.changed(verb, p.tableNames(), p)
	case verb.is("LOAD") && p.peek().is("INDEX"):
		return nil, nil
	case verb.is("LOAD"):
		return s.changed(verb, s.loadTarget(p), p)
	case verb.is("UPDATE"):
		p.word("LOW_PRIORITY")
		p.word("IGNORE")
		return s.changed(verb, s.namesUntil(p, "SET"), p)
	case verb.is("DELETE"):
		return s.changed(verb, s.namesUntil(p, "WHERE"), p)
	case verb.is("WITH"):
		return s.changed(verb, s.namesUntil(p, ""), p)
	case verb.is("SELECT"), verb.is("DO"), verb.is("CALL"):
		return nil, &UnknownError{Reason: "a call of a stored routine was logged as a statement and not as row events (the session's binlog_format is not ROW), and it can't be told which tables it changed"}
	default:
		return s.unknown("a statement of unknown kind can't be followed")
	}
}

// singleDelete takes the words of DELETE up to its first target, if the targets stand behind FROM.
func (s *statement) singleDelete(p *parser) bool {
	for p.oneOf("LOW_PRIORITY", "QUICK", "IGNORE") != "" {
	}
	return p.word("FROM")
}

// loadTarget finds INTO TABLE t.
func (s *statement) loadTarget(p *parser) []tableName {
	for !p.atEnd() {
		if p.word("INTO", "TABLE") {
			return []tableName{p.tableName()}
		}
		p.take()
	}
	p.unexpected("INTO TABLE")
	return nil
}

// namesUntil lists everything up to a word that may be a table: table references with aliases and conditions are not
// taken apart.
func (s *statement) namesUntil(p *parser, end string) []tableName {
	var out []tableName
	for !p.atEnd() && !p.peek().is(end) {
		if !p.peek().isName() {
			p.take()
			continue
		}
		n := tableName{s.st.Database, p.take().text}
		out = append(out, n)
		if p.peek().isPunct('.') && p.peekAt(1).isName() {
			p.take()
			out = append(out, tableName{n.table, p.take().text})
		}
	}
	return out
}

// changed gives the effects of a change of these tables. A name that is not known may be a view on a table that is.
func (s *statement) changed(verb token, names []tableName, p *parser) ([]Effect, error) {
	reason := fmt.Sprintf("a change of rows (%s) was logged as a statement and not as row events (the session's binlog_format is not ROW), so its effect is not known", verb.text)
	if p.err != nil {
		if !s.mentionsDatabase() {
			return nil, nil
		}
		return nil, &UnknownError{Reason: reason + "; the tables can't be told: " + p.err.Error()}
	}
	var out []Effect
	known := false
	for _, n := range names {
		name, _, live, ok := s.lookup(n)
		known = known || ok
		if ok && live {
			out = append(out, Effect{Op: Quarantine, Table: name, Reason: reason})
		}
	}
	if !known && len(names) > 0 && s.followed(names[0]) {
		return nil, &UnknownError{Reason: reason + fmt.Sprintf("; %s is not a followed table, it may be a view on one", names[0].table)}
	}
	return dedupe(out), nil
}

func dedupe(in []Effect) []Effect {
	var out []Effect
	seen := map[string]bool{}
	for _, e := range in {
		if !seen[e.Table] {
			seen[e.Table] = true
			out = append(out, e)
		}
	}
	return out
}
