package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkdb/tidemark/replica"
)

func newSyncResync() *cobra.Command {
	var c connection
	var wait bool
	cmd := &cobra.Command{
		Use: "resync DATABASE.TABLE", Short: "Copy one table anew while its old copy is served",
		Long: `Copies one table of a materialized database anew, beside the running stream and without a lock on the source. The
old copy is served until the new one has met the stream; then they are swapped in one commit. The other tables
are not touched. A table in quarantine leaves it this way. A copy that fails is tried again, with growing pauses.

The command returns when the copy is registered; it runs in the server. With --wait it returns when the new copy
is served, or when a try has failed. A dot in a name goes in backquotes: '` + "`my.shop`.`order.lines`" + `'.`,
		Example: `  tidemark sync resync shop.orders --wait`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			database, table, err := splitTable(args[0])
			if err != nil {
				return err
			}
			return failed(c.with(cmd.Context(), func(db *sql.DB) error {
				statement := "SYSTEM RESYNC MATERIALIZEDMYSQL TABLE " + quoteName(database) + "." + quoteName(table)
				if _, err := db.ExecContext(cmd.Context(), statement); err != nil {
					return plain(err)
				}
				if !wait {
					fmt.Fprintf(cmd.OutOrStdout(), "%s is copied anew; tidemark sync status %s shows how far it is\n", args[0], database)
					return nil
				}
				return waitForResync(cmd.Context(), db, database, table, cmd.OutOrStdout())
			}))
		},
	}
	c.addFlags(cmd)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the new copy is served")
	return cmd
}

var errTableName = errors.New("DATABASE.TABLE is wanted, with names that hold a dot in backquotes")

// splitTable reads DATABASE.TABLE.
func splitTable(text string) (database, table string, err error) {
	database, rest, err := cutName(text)
	if err != nil || !strings.HasPrefix(rest, ".") {
		return "", "", errTableName
	}
	table, rest, err = cutName(rest[1:])
	if err != nil || rest != "" {
		return "", "", errTableName
	}
	return database, table, nil
}

// nameInFront is a name in backquotes, or one up to a dot.
var nameInFront = regexp.MustCompile("^(?:`((?:[^`]|``)+)`|([^`.][^.]*))")

// cutName takes a name off the front.
func cutName(text string) (name, rest string, err error) {
	m := nameInFront.FindStringSubmatch(text)
	if m == nil {
		return "", "", errTableName
	}
	return strings.ReplaceAll(m[1], "``", "`") + m[2], text[len(m[0]):], nil
}

// waitForResync shows the progress until the new copy is served, and fails with the reason when a try has failed.
func waitForResync(ctx context.Context, db *sql.DB, database, table string, out io.Writer) error {
	p := newProgress(out)
	defer p.end()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		list, err := readStatus(ctx, db, database)
		if err != nil {
			return err
		}
		t := tableOf(&list[0], table)
		switch {
		case t == nil:
			return fmt.Errorf("%s.%s is gone: the source has no such table any more", database, table)
		case list[0].State == replica.StateError && list[0].Error != nil:
			return fmt.Errorf("%s: %s", database, *list[0].Error)
		case list[0].State == replica.StateStopped:
			return fmt.Errorf("%s is stopped; the copy begins when it is started", database)
		case t.Resync == nil:
			p.end()
			fmt.Fprintf(out, "%s.%s is copied anew: %d rows\n", database, table, t.Rows)
			return nil
		case t.Resync.Tries > 0 && t.Resync.Error != nil:
			return fmt.Errorf("the copy of %s.%s failed: %s", database, table, *t.Resync.Error)
		}
		p.note(resyncText(database, t))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errInterrupted
		}
	}
}

func tableOf(st *replica.Status, table string) *replica.TableStatus {
	for i := range st.Tables {
		if st.Tables[i].Name == table {
			return &st.Tables[i]
		}
	}
	return nil
}

// resyncText tells in few words how far a new copy is.
func resyncText(database string, t *replica.TableStatus) string {
	r := t.Resync
	text := fmt.Sprintf("%s.%s: %s", database, t.Name, r.State)
	switch {
	case r.State == replica.ResyncCopying && r.TotalRows > 0:
		text += fmt.Sprintf(", %d of about %d rows", r.Rows, r.TotalRows)
	case r.Error != nil:
		text += ": " + *r.Error
	}
	if r.NextTry != nil {
		text += ", next try at " + r.NextTry.UTC().Format(time.DateTime)
	}
	return text
}
