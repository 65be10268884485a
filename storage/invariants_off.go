//go:build !invariants

package storage

import "github.com/tidemarkdb/tidemark/column"

// The checks of our own invariants cost too much for a server at work; see invariants_on.go.

func checkRows(*column.Batch)               {}
func checkStored(*column.Batch, []byte)     {}
func checkAlive(*home, CommitSeq, []uint32) {}
func checkHeld(string, int)                 {}
func checkMoved(string, []uint32)           {}
