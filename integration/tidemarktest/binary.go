// Package tidemarktest runs the tidemark program for end-to-end tests, as a process of its own with a data directory of
// its own, and compares what it answers with what a MySQL server answers, through MySQL's own client.
//
// Nothing here looks into the program: tests see what a user sees, which is SQL, the command line, the log and the files.
package tidemarktest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// BinaryVariable names an environment variable with the path of a program to test instead of one built here.
const BinaryVariable = "TIDEMARK_TEST_BINARY"

var build = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		return filepath.Abs(path)
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	// One place for all runs: go build links only when something has changed. What runs is a link to it, which stays
	// what it is when another test process builds anew (go build removes the old file and makes a new one).
	target := filepath.Join(root, ".cache", "test", "tidemark")
	cmd := exec.Command("go", "build", "-tags", "invariants", "-o", target, "./cmd/tidemark")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building tidemark: %w\n%s", err, out)
	}
	removeOld(filepath.Dir(target))
	dir, err := os.MkdirTemp(filepath.Dir(target), "run-")
	if err != nil {
		return "", err
	}
	own := filepath.Join(dir, "tidemark")
	if err := os.Link(target, own); err != nil {
		return "", err
	}
	return own, nil
})

// removeOld removes what processes left that did not come to CleanUp, a day later, when none of them runs any more.
func removeOld(dir string) {
	runs, err := filepath.Glob(filepath.Join(dir, "run-*"))
	if err != nil {
		return
	}
	for _, run := range runs {
		if info, err := os.Stat(run); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(run)
		}
	}
}

// Binary builds the program, once in a test process, and returns its path.
func Binary(tb testing.TB) string {
	tb.Helper()
	path, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// CleanUp removes what Binary left for this process; for the end of TestMain.
func CleanUp() {
	if os.Getenv(BinaryVariable) != "" {
		return
	}
	if path, err := build(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod above the working directory")
		}
		dir = parent
	}
}
