package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newSyncStop() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use: "stop DATABASE", Short: "Stop following the source; the data stay readable",
		Long: `Stops following the source, also over restarts of the server, until "sync start". The data stay readable as
they are. A source keeps its binlogs for a limited time only: what it has purged can not be followed any more.`,
		Example: "  tidemark sync stop shop",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exec(cmd.Context(), &c, "SYSTEM STOP MATERIALIZEDMYSQL "+quoteName(args[0])); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is stopped\n", args[0])
			return nil
		},
	}
	c.addFlags(cmd)
	return cmd
}
