// Command demo shows the whole way on one machine: a real MySQL with a small shop, a snapshot of it, writers on the
// source while both sides are asked the same question, and the proof that every row is equal. It leaves nothing
// running unless it is told to.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	binary  string
	rows    int
	traders int
	trading time.Duration
	keep    bool
}

func main() {
	var o options
	flag.StringVar(&o.binary, "tidemark", "bin/tidemark", "the tidemark program")
	flag.IntVar(&o.rows, "rows", 200_000, "rows of the shop, over its four tables")
	flag.IntVar(&o.traders, "traders", 4, "writers on the source")
	flag.DurationVar(&o.trading, "trading", 12*time.Second, "how long they write")
	flag.BoolVar(&o.keep, "keep", false, "leave both servers up")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run plays the demo and ends what it started, also when it fails or is interrupted.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	s := &stage{options: o, printer: newPrinter(out), log: slog.New(notices{out})}
	defer func() {
		if err != nil || !o.keep {
			err = errors.Join(err, s.close())
		}
	}()
	for _, scene := range []func(context.Context) error{
		s.startSource, s.fillShop, s.startTidemark, s.materialize, s.watchSnapshot, s.trade, s.verify,
	} {
		if err := scene(ctx); err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
	}
	if o.keep {
		return s.printKept(ctx)
	}
	return nil
}

// notices prints what mysqltest logs as plain lines of the demo.
type notices struct{ out io.Writer }

func (notices) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (n notices) WithAttrs([]slog.Attr) slog.Handler             { return n }
func (n notices) WithGroup(string) slog.Handler                  { return n }

func (n notices) Handle(_ context.Context, r slog.Record) error {
	line := "   " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	_, err := fmt.Fprintln(n.out, line)
	return err
}
