package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newSyncDrop() *cobra.Command {
	var c connection
	var ifExists bool
	cmd := &cobra.Command{
		Use: "drop DATABASE", Short: "End a copy and delete its data here; the source is not touched",
		Example: "  tidemark sync drop shop",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			statement := "DROP DATABASE "
			if ifExists {
				statement += "IF EXISTS "
			}
			if err := exec(cmd.Context(), &c, statement+quoteName(args[0])); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is dropped\n", args[0])
			return nil
		},
	}
	c.addFlags(cmd)
	cmd.Flags().BoolVar(&ifExists, "if-exists", false, "do nothing when there is no such database")
	return cmd
}
