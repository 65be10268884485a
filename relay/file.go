package relay

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
)

// logStart is the offset of the first event of a file.
const logStart = 4

// file is one file of a relay. All but size is fixed; size is guarded by Relay.mu.
type file struct {
	name   string // in the directory
	source gtid.UUID
	// number orders the files: ours by GTIDs, the source's by position. It goes up in steps of one.
	number uint64
	// log is the file's name on the source, by position; empty by GTIDs, where a file says by itself what it is part of.
	log string
	// begin is what lies in front of it. By position there is no set.
	begin gtid.Point
	// size is the length up to the end of the last transaction. The file may be longer.
	size int64
}

// uuidLength is the length of a UUID in a file's name, which is that and, behind a dot, a number of ours or the
// name that the source gave the file.
const uuidLength = 36

func fileName(source gtid.UUID, rest string) string { return source.String() + "." + rest }

// parseName is false for what is no file of a relay.
func parseName(name string) (*file, bool) {
	if len(name) < uuidLength+2 || name[uuidLength] != '.' {
		return nil, false
	}
	source, err := gtid.ParseUUID(name[:uuidLength])
	if err != nil || source.String() != name[:uuidLength] {
		return nil, false
	}
	f := &file{name: name, source: source}
	rest := name[uuidLength+1:]
	if n, err := strconv.ParseUint(rest, 10, 64); err == nil && strings.Trim(rest, "0123456789") == "" {
		f.number = n
		return f, true
	}
	p := gtid.Position{File: rest, Offset: logStart}
	_, n, ok := p.Series()
	f.number, f.log, f.begin = n, rest, gtid.Point{Position: p}
	return f, ok
}

// numbered makes a file of a relay by GTIDs.
func numbered(source gtid.UUID, number uint64, begin gtid.Point) *file {
	return &file{name: fileName(source, fmt.Sprintf("%06d", number)), source: source, number: number, begin: begin}
}

// of makes a file of a relay by position.
func of(source gtid.UUID, log string) (*file, error) {
	f, ok := parseName(fileName(source, log))
	if !ok || f.log == "" || strings.ContainsRune(log, os.PathSeparator) {
		return nil, &binlog.Error{Class: binlog.Misconfigured, Err: fmt.Errorf("%q is not the name of a binlog file", log)}
	}
	return f, nil
}

// list finds the files of a relay's directory, in order. It is an error when they are not of one kind or one is missing
// in between.
func list(dir string, parse func(name string) (*file, bool)) ([]*file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	var out []*file
	for _, e := range entries {
		f, ok := parse(e.Name())
		if !ok || e.IsDir() {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("relay: %w", err)
		}
		f.size = info.Size()
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *file) int { return compareNumbers(a.number, b.number) })
	for i := range out[min(1, len(out)):] {
		if err := follows(out[i], out[i+1]); err != nil {
			return nil, &DamageError{Path: filepath.Join(dir, out[i+1].name), Err: err}
		}
	}
	return out, nil
}

func compareNumbers(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// follows is an error unless b is the file behind a.
func follows(a, b *file) error {
	switch {
	case (a.log == "") != (b.log == ""), !a.begin.Position.SameSeries(b.begin.Position) && a.log != "":
		return fmt.Errorf("it does not belong together with %s", a.name)
	case b.number != a.number+1:
		return fmt.Errorf("a file between %s and it is missing", a.name)
	}
	return nil
}
