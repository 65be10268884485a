package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/replica"
	"github.com/tidemarkdb/tidemark/server"
	"github.com/tidemarkdb/tidemark/server/admin"
	"github.com/tidemarkdb/tidemark/wire"
)

func newCheck() *cobra.Command {
	var from string
	var settings []string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check", Short: "Look whether a MySQL server can be a source, and how it would be copied",
		Long: `Looks at a MySQL server as "sync start" does, and changes nothing there nor here; no Tidemark server is needed. Shows
what the server is, how its database would be copied and why so, and everything that is in the way, at once, each
with the statement or the command that puts it right on this product. docs/sources.md lists what is looked at.

What is looked at includes a dump connection that reads one event of the binlog and, on managed servers that are
known to refuse it, an attempt to take the global read lock, for an instant and only while no long statement runs.

Behind ? in the address stand settings as for "sync start". Files and programs that they name are taken from here; a
server takes them from its --credentials-dir. Of several hosts the first is the source, the others are looked at as
servers to go on with.

The exit code is 0 when the database can be copied, warnings or not, and 1 when it can't.`,
		Example: `  tidemark check --from mysql://repl:secret@db.example:3306/shop
  tidemark check --from mysql://repl@db.example/shop --setting exclude_tables='tmp_.*' --setting snapshot_lock=none
  tidemark check --from mysql://repl@db.example/shop --json | jq -r '.problems[].statements[]?'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec, err := checkedSpec(from, settings)
			if err != nil {
				return err
			}
			result, err := check(cmd.Context(), spec)
			if err != nil {
				return failed(err)
			}
			print := printCheck
			if asJSON {
				print = printCheckJSON
			}
			if err := print(cmd.OutOrStdout(), result); err != nil {
				return failed(err)
			}
			if !result.OK {
				return &exitError{code: exitFailed}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "the source: mysql://user:password@host:port/database")
	f.StringArrayVar(&settings, "setting", nil, "a setting that the database would have, name=value; may be repeated")
	f.BoolVar(&asJSON, "json", false, "print one object")
	return cmd
}

// checkedSpec goes the way that "sync start" goes, statement included, so that the same is checked.
func checkedSpec(from string, settings []string) (replica.Spec, error) {
	if from == "" {
		return replica.Spec{}, errors.New("--from is missing: mysql://user:password@host:port/database")
	}
	text, err := createStatement("checked", from, settings)
	if err != nil {
		return replica.Spec{}, err
	}
	st, err := admin.Parse(text)
	if err != nil {
		return replica.Spec{}, err
	}
	create, ok := st.(*admin.CreateDatabase)
	if !ok {
		return replica.Spec{}, fmt.Errorf("a source was read as a %T", st)
	}
	return server.SpecOf(create)
}

// checked is the JSON form of a check. Fields are added, never changed or taken away; docs/sources.md describes them.
type checked struct {
	OK       bool             `json:"ok"`
	Source   *checkedSource   `json:"source"` // null when it does not answer
	Plan     *checkedPlan     `json:"plan"`   // null when it does not answer or is no MySQL
	Problems []compat.Problem `json:"problems"`
	Warnings []compat.Problem `json:"warnings"`
}

type checkedSource struct {
	Address    string             `json:"address"`
	Flavour    string             `json:"flavour"`
	Version    string             `json:"version"`
	ServerUUID string             `json:"server_uuid"`
	ServerID   uint32             `json:"server_id"`
	Account    string             `json:"account"`
	Roles      []string           `json:"roles"`
	GTIDMode   string             `json:"gtid_mode"`
	LogBin     bool               `json:"log_bin"`
	ReadOnly   bool               `json:"read_only"`
	Replica    bool               `json:"replica"`
	Cluster    string             `json:"cluster"`
	TLS        bool               `json:"tls"`
	TimeZone   string             `json:"time_zone"`
	Retention  replica.Keeping    `json:"binlog_retention"`
	Tried      map[string]outcome `json:"tried"`
}

// outcome is that of something tried: "ok", "refused", or "not tried".
type outcome string

type checkedPlan struct {
	Database  string            `json:"database"`
	Tables    int               `json:"tables"`
	Lock      compat.LockPlan   `json:"snapshot_lock"` // "" when none can be had
	Weaker    []compat.LockPlan `json:"weaker"`
	Reasons   []string          `json:"reasons"`
	FollowBy  string            `json:"follow_by"` // gtid or position
	NeedExact []string          `json:"tables_without_key"`
}

// check looks at a source. A source that does not answer is a problem among others.
func check(ctx context.Context, spec replica.Spec) (*checked, error) {
	report, err := replica.Check(ctx, spec)
	var refused *wire.ConnectError
	if errors.As(err, &refused) {
		return &checked{Problems: []compat.Problem{{Code: "connect", What: refused.Error()}}, Warnings: []compat.Problem{}}, nil
	}
	if err != nil {
		return nil, err
	}
	result := &checked{OK: len(report.Problems) == 0, Source: sourceOf(report.Source), Problems: list(report.Problems), Warnings: []compat.Problem{}}
	if report.Plan != nil {
		result.Plan, result.Warnings = planOf(report.Plan), list(report.Plan.Warnings)
	}
	return result, nil
}

// list makes an empty list of none, for JSON.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func sourceOf(s *compat.Source) *checkedSource {
	return &checkedSource{Address: s.Addr, Flavour: string(s.Flavour), Version: s.Version, ServerUUID: s.UUID.String(), ServerID: s.ServerID, Account: s.Grants.Account, Roles: list(s.Grants.Roles),
		GTIDMode: s.GTIDMode, LogBin: s.LogBin, ReadOnly: s.ReadOnly, Replica: s.ReplicaOf, Cluster: s.Cluster, TLS: s.TLS.Used, TimeZone: s.TimeZone,
		Retention: replica.KeepingOf(s.Retention), Tried: map[string]outcome{"global_lock": outcomeOf(s.Locking), "binlog_dump": outcomeOf(s.Dumping)}}
}

func outcomeOf(t compat.Trial) outcome {
	switch {
	case !t.Tried:
		return "not tried"
	case t.Err != nil:
		return "refused"
	}
	return "ok"
}

func planOf(p *compat.Plan) *checkedPlan {
	by := "position"
	if p.GTIDs {
		by = "gtid"
	}
	return &checkedPlan{Database: p.Database, Tables: len(p.Catalog.Tables), Lock: p.Lock, Weaker: list(p.Weaker), Reasons: list(p.Reasons), FollowBy: by, NeedExact: list(p.NeedExact)}
}

func printCheckJSON(out io.Writer, c *checked) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(c)
}

func printCheck(out io.Writer, c *checked) error {
	var b strings.Builder
	if s := c.Source; s != nil {
		fmt.Fprintf(&b, "source    %s, version %s, at %s\n", s.Flavour, s.Version, s.Address)
		fmt.Fprintf(&b, "account   %s\n", cmp.Or(s.Account, "unknown"))
	}
	if p := c.Plan; p != nil {
		fmt.Fprintf(&b, "plan      copy %d tables of %s with snapshot_lock = %s, then follow by %s\n", p.Tables, p.Database, cmp.Or(string(p.Lock), "(none can be had)"), p.FollowBy)
		for _, reason := range p.Reasons {
			fmt.Fprintf(&b, "          %s\n", reason)
		}
	}
	for _, p := range c.Problems {
		printProblem(&b, "error", p)
	}
	for _, p := range c.Warnings {
		printProblem(&b, "warning", p)
	}
	fmt.Fprintln(&b, verdict(c))
	_, err := io.WriteString(out, b.String())
	return err
}

func printProblem(b *strings.Builder, severity string, p compat.Problem) {
	fmt.Fprintf(b, "%-9s %s\n", severity, p.What)
	if p.Do != "" {
		fmt.Fprintf(b, "          -> %s\n", p.Do)
	}
	for _, s := range p.Statements {
		fmt.Fprintf(b, "             %s\n", s)
	}
	if p.Manual != "" {
		fmt.Fprintf(b, "             (%s)\n", p.Manual)
	}
}

func verdict(c *checked) string {
	text := "The database can be copied"
	if !c.OK {
		text = fmt.Sprintf("The database can't be copied, for %d reason%s", len(c.Problems), plural(len(c.Problems)))
	}
	if n := len(c.Warnings); n > 0 {
		text += fmt.Sprintf("; %d warning%s", n, plural(n))
	}
	return text + "."
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
