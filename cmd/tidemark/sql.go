package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tidemarkdb/tidemark/server/admin"
)

func newSQL() *cobra.Command {
	var c connection
	var format, database string
	cmd := &cobra.Command{
		Use: "sql [STATEMENT ...]", Short: "Run statements on the server",
		Long: `Runs the statements given as arguments, or those that come on standard input, separated by
semicolons. The first statement that fails ends it. Any MySQL client does the same.`,
		Example: `  tidemark sql 'SHOW DATABASES'
  tidemark sql --database shop 'SELECT status, COUNT(*) FROM orders GROUP BY status'
  tidemark sql --format tsv < report.sql > report.tsv`,
		RunE: func(cmd *cobra.Command, args []string) error {
			print, ok := printers[format]
			if format == "" {
				print, ok = defaultPrinter(cmd.OutOrStdout()), true
			}
			if !ok {
				return fmt.Errorf("--format %s: there are table, tsv and json", format)
			}
			statements, err := readStatements(args, cmd.InOrStdin())
			if err != nil {
				return failed(err)
			}
			db, err := c.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			return failed(runStatements(cmd.Context(), db, database, statements, cmd.OutOrStdout(), print))
		},
	}
	c.addFlags(cmd)
	cmd.Flags().StringVar(&format, "format", "", "table, tsv or json (one object a row); default: table on a terminal, else tsv")
	cmd.Flags().StringVarP(&database, "database", "D", "", "default database")
	return cmd
}

func readStatements(args []string, in io.Reader) ([]string, error) {
	if len(args) == 0 {
		b, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		args = []string{string(b)}
	}
	var out []string
	for _, a := range args {
		out = append(out, admin.Split(a)...)
	}
	return out, nil
}

func runStatements(ctx context.Context, db *sql.DB, database string, statements []string, out io.Writer, print printer) error {
	if database != "" {
		statements = append([]string{"USE " + quoteName(database)}, statements...)
	}
	for _, st := range statements {
		if err := runStatement(ctx, db, st, out, print); err != nil {
			return plain(err)
		}
	}
	return nil
}

func runStatement(ctx context.Context, db *sql.DB, statement string, out io.Writer, print printer) error {
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil || len(columns) == 0 {
		return err
	}
	if err := print(out, columns, rows); err != nil {
		return err
	}
	return rows.Err()
}

// printer writes a result.
type printer func(out io.Writer, columns []string, rows *sql.Rows) error

var printers = map[string]printer{"table": printTable, "tsv": printTSV, "json": printJSON}

func defaultPrinter(out io.Writer) printer {
	if isTerminal(out) {
		return printTable
	}
	return printTSV
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// scanRow reads a row as text; nil is NULL.
func scanRow(rows *sql.Rows, n int) ([]*string, error) {
	values := make([]*string, n)
	targets := make([]any, n)
	for i := range values {
		targets[i] = &values[i]
	}
	return values, rows.Scan(targets...)
}

var tsvEscapes = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\x00", `\0`)

// printTSV writes what the mysql client writes in batch mode.
func printTSV(out io.Writer, columns []string, rows *sql.Rows) error {
	fmt.Fprintln(out, strings.Join(columns, "\t"))
	for rows.Next() {
		values, err := scanRow(rows, len(columns))
		if err != nil {
			return err
		}
		cells := make([]string, len(values))
		for i, v := range values {
			cells[i] = "NULL"
			if v != nil {
				cells[i] = tsvEscapes.Replace(*v)
			}
		}
		if _, err := fmt.Fprintln(out, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return nil
}

// tableBlock is how many rows are measured together: a longer result is printed as several tables' worth of widths, so
// that it need not be kept.
const tableBlock = 1000

func printTable(out io.Writer, columns []string, rows *sql.Rows) error {
	total := 0
	for first := true; ; first = false {
		block, err := readBlock(rows, len(columns))
		if err != nil {
			return err
		}
		total += len(block)
		if first || len(block) > 0 {
			writeTable(out, columns, block)
		}
		if len(block) < tableBlock {
			fmt.Fprintf(out, "%d rows\n", total)
			return nil
		}
	}
}

func readBlock(rows *sql.Rows, n int) ([][]string, error) {
	var block [][]string
	for len(block) < tableBlock && rows.Next() {
		values, err := scanRow(rows, n)
		if err != nil {
			return nil, err
		}
		cells := make([]string, n)
		for i, v := range values {
			cells[i] = "NULL"
			if v != nil {
				cells[i] = strings.ReplaceAll(*v, "\n", `\n`)
			}
		}
		block = append(block, cells)
	}
	return block, rows.Err()
}

func writeTable(out io.Writer, columns []string, rows [][]string) {
	widths := make([]int, len(columns))
	for _, r := range append([][]string{columns}, rows...) {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	line := func(cells []string) {
		var b strings.Builder
		for i, c := range cells {
			b.WriteString(c + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+2))
		}
		fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
	}
	line(columns)
	rule := make([]string, len(columns))
	for i, w := range widths {
		rule[i] = strings.Repeat("-", w)
	}
	line(rule)
	for _, r := range rows {
		line(r)
	}
}

func printJSON(out io.Writer, columns []string, rows *sql.Rows) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for rows.Next() {
		values, err := scanRow(rows, len(columns))
		if err != nil {
			return err
		}
		object := make(map[string]*string, len(columns))
		for i, name := range columns {
			object[name] = values[i]
		}
		if err := enc.Encode(object); err != nil {
			return err
		}
	}
	return nil
}
