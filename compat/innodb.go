package compat

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// TableIDs gives InnoDB's own ids of tables, by table name: those of its partitions joined. TRUNCATE and rebuilds give a
// table new ids and RENAME takes them along, so that a table that was exchanged for another of the same definition shows.
// Names that InnoDB spells in a way that is not known here are left out. Reading them can take long on a server with
// many tables; it must not be done under a lock.
func TableIDs(ctx context.Context, c *wire.Conn, tables []*schema.Table) (map[string]string, error) {
	spelled := map[string]string{}
	prefix := ""
	for _, t := range tables {
		database, ok1 := fileName(t.Database)
		table, ok2 := fileName(t.Name)
		if ok1 && ok2 {
			prefix = database + "/"
			spelled[table] = t.Name
		}
	}
	ids := map[string]string{}
	if len(spelled) == 0 {
		return ids, nil
	}
	r, err := innodbTables(ctx, c, prefix)
	if err != nil {
		return nil, fmt.Errorf("reading InnoDB's table ids: %w", err)
	}
	for i := range r.Rows() {
		name, ok := strings.CutPrefix(r.Text(i, 0), prefix)
		if table, wanted := spelled[withoutPartition(name)]; ok && wanted {
			ids[table] += r.Text(i, 1) + " "
		}
	}
	return ids, nil
}

// codeNoSuchView is "unknown table in information_schema".
const codeNoSuchView = 1109

// innodbTables lists names and ids. Before 8.0 the list has another name (from the manual: MySQL 8.0, "InnoDB
// INFORMATION_SCHEMA Tables").
func innodbTables(ctx context.Context, c *wire.Conn, prefix string) (r *wire.Result, err error) {
	for _, view := range []string{"INNODB_TABLES", "INNODB_SYS_TABLES"} {
		r, err = c.Query(ctx, fmt.Sprintf("SELECT NAME, TABLE_ID FROM information_schema.%s WHERE LEFT(NAME, %d) = %s ORDER BY NAME", view, len(prefix), wire.Literal(prefix)))
		if wire.Code(err) != codeNoSuchView {
			break
		}
	}
	return r, err
}

// withoutPartition cuts "t#p#p0" to "t"; a # of the table's own name is spelled otherwise.
func withoutPartition(name string) string {
	table, _, _ := strings.Cut(name, "#")
	return table
}

// fileName spells a name as InnoDB does (Reference Manual, "Mapping of Identifiers to File Names"). ok is false for
// letters beyond ASCII for which MySQL has spellings of their own.
func fileName(name string) (spelled string, ok bool) {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z':
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, "@%04x", r)
		default:
			return "", false
		}
	}
	return b.String(), true
}
