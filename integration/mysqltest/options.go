package mysqltest

import (
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Options describe the server a caller wants. The zero value is a server with a binary log in ROW format with FULL row
// images, GTIDs on, and its log flushed to disk about once a second.
type Options struct {
	// Args are mysqld options. They come after the package's own, so they win: "--gtid-mode=OFF".
	// Any of them makes the server the caller's own (see Own).
	Args []string

	// Own asks for a server that nobody else uses and that may be stopped, killed and restarted.
	// It can't be had in the way External.
	Own bool

	// Durable makes every commit synced to disk, as MySQL does by default: needed where the server is killed and
	// must come back with all that it confirmed. Otherwise commits are several times faster and a crash of the
	// machine (not of the server) could lose the last second.
	Durable bool

	// Detached lets the server outlive this process, unless Close ends it first; see Server.EndCommand.
	Detached bool

	// Logger hears which way was taken and why the others were not; nil discards that.
	Logger *slog.Logger
}

func (o Options) own() bool { return o.Own || len(o.Args) > 0 }

func (o Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// serverArgs are the mysqld options that are the same in every way of running one.
func (o Options) serverArgs() []string {
	args := []string{
		"--server-id=" + strconv.Itoa(1000+rand.IntN(1<<30)),
		"--log-bin=binlog",
		"--binlog-format=ROW",
		"--binlog-row-image=FULL",
		"--gtid-mode=ON",
		"--enforce-gtid-consistency=ON",
		"--secure-file-priv=",
		"--loose-mysqlx=0",
		"--loose-innodb-redo-log-capacity=128M",
	}
	if !o.Durable {
		args = append(args, "--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0")
	}
	return append(args, o.Args...)
}

// initArgs are those of the options that must already be given when the data directory is initialized.
func (o Options) initArgs() []string {
	var args []string
	for _, arg := range o.Args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		switch strings.ReplaceAll(name, "_", "-") {
		case "lower-case-table-names", "innodb-page-size", "innodb-data-file-path":
			args = append(args, arg)
		}
	}
	return args
}
