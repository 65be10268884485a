package tidemarktest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// Query is a statement whose answers are compared.
type Query struct {
	Name string // for messages
	Text string
}

// AllRows asks for every row of tables, in any order.
func AllRows(tables ...string) []Query {
	queries := make([]Query, len(tables))
	for i, t := range tables {
		queries[i] = Query{t, "SELECT * FROM `" + t + "`"}
	}
	return queries
}

// Same fails the test unless both servers answer the queries with the same column names and the same rows, byte for
// byte, as the mysql client prints them as text and with --xml (which tells NULL from 'NULL'). The order of rows is left
// open.
func Same(tb testing.TB, source, tidemark mysqltest.Login, database string, queries ...Query) {
	tb.Helper()
	for _, format := range []string{"--batch", "--xml"} {
		want := answers(tb, source, database, format, queries)
		got := answers(tb, tidemark, database, format, queries)
		for i, q := range queries {
			if diff := difference(rows(want[i], format), rows(got[i], format)); diff != "" {
				tb.Errorf("%s (%s): the answers differ:\n%s", q.Name, format, diff)
			}
		}
	}
}

// SameTables compares all rows of tables.
func SameTables(tb testing.TB, source, tidemark mysqltest.Login, database string, tables ...string) {
	tb.Helper()
	Same(tb, source, tidemark, database, AllRows(tables...)...)
}

const marker = "tidemarktest-marker"

// answers runs all queries in one client, which costs much more to start than to run, and cuts its output up again.
func answers(tb testing.TB, server mysqltest.Login, database, format string, queries []Query) []string {
	tb.Helper()
	var script strings.Builder
	for _, q := range queries {
		fmt.Fprintf(&script, "%s;\nSELECT '%s';\n", q.Text, marker)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := server.Client(ctx, strings.NewReader(script.String()), format, "--max-allowed-packet=1073741824", database)
	if err != nil {
		tb.Fatalf("mysql client at %s: %v\nafter %d bytes of output, the last: %q", server.Addr(), err, len(out), tail(string(out), 300))
	}
	parts := bytes.Split(out, []byte(marker+"\n"+marker+"\n"))
	if format == "--xml" {
		parts = splitXML(out)
	}
	if len(parts) != len(queries)+1 {
		tb.Fatalf("mysql client at %s gave %d answers to %d queries", server.Addr(), len(parts)-1, len(queries))
	}
	texts := make([]string, len(queries))
	for i := range texts {
		texts[i] = string(parts[i])
	}
	return texts
}

// splitXML cuts before the marker's own result, whose statement stands in its head.
func splitXML(out []byte) [][]byte {
	head := []byte(`<resultset statement="SELECT &apos;` + marker)
	parts := bytes.Split(out, head)
	if len(parts) == 1 {
		parts = bytes.Split(out, []byte(`<resultset statement="SELECT '`+marker))
	}
	for i := range parts[1:] {
		_, rest, _ := bytes.Cut(parts[i+1], []byte("</resultset>\n"))
		parts[i+1] = rest
	}
	return parts
}

// rows cuts an answer into rows and sorts them. The first, the column names of --batch, stays what it is.
func rows(answer, format string) []string {
	if format == "--xml" {
		all := strings.Split(answer, "<row>")
		for i := range all[1:] {
			all[i+1], _, _ = strings.Cut(all[i+1], "</row>")
		}
		all[0], _, _ = strings.Cut(all[0], "</resultset>")
		slices.Sort(all[1:])
		return all
	}
	all := strings.Split(strings.TrimSuffix(answer, "\n"), "\n")
	slices.Sort(all[1:])
	return all
}

// difference describes the first rows that only one side has, "" when there are none.
func difference(want, got []string) string {
	const limit = 6
	var out strings.Builder
	if len(want) != len(got) {
		fmt.Fprintf(&out, "%d rows on the source, %d here\n", len(want)-1, len(got)-1)
	}
	missing, extra := subtract(want, got), subtract(got, want)
	for _, side := range []struct {
		name string
		rows []string
	}{{"source only", missing}, {"here only  ", extra}} {
		for i, row := range side.rows {
			if i == limit {
				fmt.Fprintf(&out, "%s: and %d more\n", side.name, len(side.rows)-limit)
				break
			}
			fmt.Fprintf(&out, "%s: %q\n", side.name, clip(row, 400))
		}
	}
	return out.String()
}

// subtract gives the members of a beyond those of b, as multisets.
func subtract(a, b []string) []string {
	count := map[string]int{}
	for _, s := range b {
		count[s]++
	}
	var out []string
	for _, s := range a {
		if count[s]--; count[s] < 0 {
			out = append(out, s)
		}
	}
	return out
}

func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:limit] + "..."
}
