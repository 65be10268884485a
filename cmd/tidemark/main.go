// Command tidemark keeps MySQL databases materialized in a columnar store and answers analytical SQL over MySQL's
// protocol.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	_ "time/tzdata" // where the system has no time zones

	"github.com/spf13/cobra"
)

// The exit codes, which --help documents.
const (
	exitOK        = 0
	exitFailed    = 1 // verify: different
	exitUndecided = 2 // of verify only
	exitUsage     = 3
	exitNoServer  = 4
)

// exitError carries the exit code of a command that failed. An empty text means that everything has been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

const longHelp = `Tidemark keeps a MySQL database materialized, live, in a columnar store, and answers
analytical SQL about it over the MySQL protocol.

  1. Start the server. It needs a directory for its data and nothing else:
       tidemark serve --data /var/lib/tidemark
  2. Copy a database and follow it from then on:
       tidemark sync start shop --from mysql://repl:secret@db.example:3306/shop --wait
  3. Ask, with any MySQL client:
       mysql -h 127.0.0.1 -P 9306 -u root shop
       tidemark sql 'SELECT COUNT(*) FROM shop.orders'
  4. Prove it:
       tidemark verify shop

Exit codes: 0 done; 1 refused or failed; 3 wrong usage; 4 no server answers.
"tidemark verify" has its own: 0 equal, 1 different, 2 undecided (failures included).`

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the whole program.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var e *exitError
	if !errors.As(err, &e) {
		e = &exitError{exitUsage, err} // cobra's own errors are about flags and arguments
	}
	if text := e.Error(); text != "" {
		fmt.Fprintln(errs, "tidemark: "+text)
	}
	if e.code == exitUsage {
		fmt.Fprintln(errs, `Run "tidemark --help", or "tidemark COMMAND --help".`)
	}
	return e.code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use: "tidemark", Short: "A live columnar copy of a MySQL database", Long: longHelp,
		SilenceUsage: true, SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newServe(), newCheck(), newSync(), newVerify(), newSQL(), newVersion())
	return root
}

// failed gives an error of a command that was used as it should be.
func failed(err error) error {
	if err == nil {
		return nil
	}
	var e *exitError
	if errors.As(err, &e) {
		return err
	}
	return &exitError{exitFailed, err}
}
