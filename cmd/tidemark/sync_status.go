package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkdb/tidemark/replica"
)

func newSyncStatus() *cobra.Command {
	var c connection
	var asJSON, watch bool
	cmd := &cobra.Command{
		Use: "status [DATABASE]", Short: "Show the databases: state, position, lag, errors",
		Long: `Shows each materialized database: its source, its state (snapshot, converging, streaming, stopped or error), the point that
a query started now would see, how far that is behind the source, and what is wrong, if anything is. Given a
database, its tables too.`,
		Example: `  tidemark sync status
  tidemark sync status shop --watch
  tidemark sync status --json | jq '.[] | select(.error != null)'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			print := printStatus
			if asJSON {
				print = printStatusJSON
			}
			return failed(c.with(cmd.Context(), func(db *sql.DB) error {
				return showStatus(cmd.Context(), db, name, cmd.OutOrStdout(), watch, print)
			}))
		},
	}
	c.addFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array with an object a database")
	cmd.Flags().BoolVar(&watch, "watch", false, "print it again every second")
	return cmd
}

type statusPrinter func(out io.Writer, list []replica.Status, withTables bool) error

func showStatus(ctx context.Context, db *sql.DB, name string, out io.Writer, watch bool, print statusPrinter) error {
	for {
		list, err := readStatus(ctx, db, name)
		if err != nil {
			return err
		}
		if watch && isTerminal(out) {
			fmt.Fprint(out, "\x1b[H\x1b[2J") // to the top of an empty screen
		}
		if err := print(out, list, name != ""); err != nil || !watch {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil
		}
	}
}

func printStatusJSON(out io.Writer, list []replica.Status, _ bool) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(list)
}

func printStatus(out io.Writer, list []replica.Status, withTables bool) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "no databases yet; set one up with: tidemark sync start NAME --from mysql://user:password@host:3306/database")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DATABASE\tSTATE\tLAG\tROWS APPLIED\tPOINT\tSOURCE")
	for i := range list {
		st := &list[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", st.Name, stateText(st), lagText(st), st.RowsApplied, point(st), st.Source)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if withTables {
		if _, err := io.WriteString(out, relayText(list[0].Relay)+retentionText(list[0].Retention)); err != nil {
			return err
		}
		printTables(w, &list[0])
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return printFaults(out, list)
}

// printTables lists the tables of a database, with a bar for each one that is being copied.
func printTables(w io.Writer, st *replica.Status) {
	if st.Copy == nil {
		fmt.Fprintln(w, "\nTABLE\tSTATE\tROWS")
	} else {
		fmt.Fprintf(w, "\n%s\n\nTABLE\tSTATE\tROWS\tCOPY\n", copyText(st))
	}
	for _, t := range st.Tables {
		switch {
		case st.Copy == nil:
			fmt.Fprintf(w, "%s\t%s\t%d\n", t.Name, t.State, t.Rows)
		case t.Copy == nil:
			fmt.Fprintf(w, "%s\t%s\t%d\t\n", t.Name, t.State, t.Rows)
		default:
			c := t.Copy
			fmt.Fprintf(w, "%s\t%s\t%d\t%s %d%%%s\n", t.Name, t.State, c.Rows, bar(share(c.Rows, c.TotalRows)), share(c.Rows, c.TotalRows), pace(c.RowsPerSecond, c.LeftSeconds))
		}
	}
}

func printFaults(out io.Writer, list []replica.Status) error {
	for i := range list {
		st := &list[i]
		if st.Error != nil {
			fmt.Fprintf(out, "%s: %s\n", st.Name, *st.Error)
		}
		if r := st.Retention; r != nil && r.Warning != nil {
			fmt.Fprintf(out, "%s: warning: %s\n", st.Name, *r.Warning)
		}
		for _, t := range st.Tables {
			if t.Error != nil {
				fmt.Fprintf(out, "%s.%s is in quarantine: %s\n", st.Name, t.Name, *t.Error)
			}
			if t.Resync != nil {
				fmt.Fprintf(out, "a new copy of %s\n", resyncText(st.Name, &t))
			}
		}
	}
	return nil
}

// relayText is a line on how much of the source's log is spooled, empty for a database that is stopped.
func relayText(r *replica.RelayStatus) string {
	if r == nil {
		return ""
	}
	at := r.GTIDSet
	if at == "" {
		at = fmt.Sprintf("%s:%d", r.File, r.Position)
	}
	text := fmt.Sprintf("%.1f MiB of the source's log are spooled, up to %s", float64(r.Bytes)/(1<<20), strings.ReplaceAll(at, "\n", ""))
	if r.Full {
		text += "; no more is read from the source until some of it is applied (relay_max_bytes)"
	}
	return text + "\n"
}

// retentionText is a line on how long the source keeps what is needed next, empty as long as nothing is known.
func retentionText(r *replica.Retention) string {
	switch {
	case r == nil || r.Setting == "":
		return ""
	case r.HoursLeft != nil:
		return fmt.Sprintf("the source has what is needed next for %.1f h more (%s)\n", *r.HoursLeft, r.Setting)
	}
	return fmt.Sprintf("the source keeps its binlog by %s\n", r.Setting)
}

func stateText(st *replica.Status) string {
	if st.Copy != nil && st.Copy.TotalRows > 0 {
		return fmt.Sprintf("%s %d%%", st.State, percent(st.Copy))
	}
	return string(st.State)
}

// percent is how far a copy is; never 100 before it is complete, since the total is an estimate.
func percent(c *replica.CopyProgress) int { return min(share(c.Rows, c.TotalRows), 99) }

// share is a part in percent.
func share(rows, total uint64) int {
	if total == 0 {
		return 0
	}
	return int(min(rows*100/total, 100))
}

func lagText(st *replica.Status) string {
	if st.LagSeconds == nil {
		return "unknown"
	}
	return strconv.FormatFloat(*st.LagSeconds, 'f', 1, 64) + " s"
}
