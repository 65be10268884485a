// Package engine runs SQL of DuckDB's dialect, in the process, over pinned versions of stored tables.
//
// The contract:
//
//   - A [Scan] is one pinned table as SQL text: a relation with the table's alive rows under the current schema. A query
//     may name it any number of times. Scans are handed to [Engine.Query], which closes them with the result; the SQL text
//     of a closed scan gives an error, never a crash and never rows.
//   - Results are streamed: [Rows.Next] gives chunks of up to 2048 rows, and DuckDB works ahead by a bounded number of
//     bytes only. What a slow reader does not take is not computed.
//   - The engine reaches no file but the parts below Options.PartDirs and its own temporary directory, loads no
//     extension, and its configuration is locked.
//
// The engine runs in C++ and C in this process, so a fault there would end the process. Therefore the package's own C
// code checks every index that comes from a file or from DuckDB against the bounds it was given in Go, and an
// engine that reports an internal error is thrown away and replaced by a fresh one ([ErrBroken]).
package engine

/*
#cgo CFLAGS: -O2 -Wall -fexceptions
#include <stdlib.h>
#include "scan.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// Options configure an engine.
type Options struct {
	// MemoryLimitBytes bounds DuckDB's memory; operators that need more spill to TempDir. 0: 1 GiB.
	MemoryLimitBytes int64
	// Threads is the number of threads that all queries share. 0: as many as GOMAXPROCS.
	Threads int
	// TempDir takes spilled data, in a directory that Open makes there and that is gone after Close; what a killed process
	// left is removed by Open. No other engine may use it. Empty: queries that need more than the memory limit fail.
	TempDir string
	// TempLimitBytes bounds the bytes in TempDir. 0: nine tenths of what is free.
	TempLimitBytes int64
	// PartDirs are the directories below which parts may be read, as absolute paths. Any characters are allowed in them.
	PartDirs []string
	// Functions are registered beside the engine's own scalar functions.
	Functions []ScalarFunction
	// Logger hears of replaced engines. nil: nobody does.
	Logger *slog.Logger
}

const defaultMemoryLimit = 1 << 30

func (o *Options) setDefaults() {
	if o.MemoryLimitBytes == 0 {
		o.MemoryLimitBytes = defaultMemoryLimit
	}
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Validate reports all faults of the options at once.
func (o *Options) Validate() error {
	var faults []error
	if o.MemoryLimitBytes < 0 {
		faults = append(faults, fmt.Errorf("memory limit: %d bytes is negative", o.MemoryLimitBytes))
	}
	if o.Threads < 0 {
		faults = append(faults, fmt.Errorf("threads: %d is negative", o.Threads))
	}
	if o.TempLimitBytes < 0 {
		faults = append(faults, fmt.Errorf("temporary space limit: %d bytes is negative", o.TempLimitBytes))
	}
	for _, dir := range append(o.PartDirs[:len(o.PartDirs):len(o.PartDirs)], o.TempDir) {
		if strings.ContainsRune(dir, 0) {
			faults = append(faults, fmt.Errorf("directory %q: has a NUL character", dir))
		}
	}
	for _, dir := range o.PartDirs {
		if !filepath.IsAbs(dir) {
			faults = append(faults, fmt.Errorf("directory of parts %q: not an absolute path", dir))
		}
	}
	return errors.Join(faults...)
}

// Engine is an embedded DuckDB without data of its own. It is safe for concurrent use.
type Engine struct {
	opts     Options
	registry *C.tm_registry

	mu      sync.Mutex
	started int // instances so far
	current *instance
	scans   map[uint64]*segmentScan // by handle
	live    sync.WaitGroup          // instances
	closed  bool
}

// Open starts an engine.
func Open(opts Options) (*Engine, error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("engine options: %w", err)
	}
	opts.setDefaults()
	registry := C.tm_registry_new()
	if registry == nil {
		return nil, errors.New("engine: out of memory")
	}
	e := &Engine{opts: opts, registry: registry, scans: map[uint64]*segmentScan{}}
	if err := e.start(); err != nil {
		C.tm_registry_free(registry)
		return nil, err
	}
	return e, nil
}

func (e *Engine) start() error {
	if err := e.opts.cleanTempDir(); err != nil {
		return fmt.Errorf("engine: temporary directory: %w", err)
	}
	in, err := e.acquire()
	if err != nil {
		return err
	}
	e.release(in, nil)
	return nil
}

// tempPrefix begins the names of directories of spilled data, one an instance.
const tempPrefix = "spill-"

func (o *Options) cleanTempDir() error {
	if o.TempDir == "" {
		return nil
	}
	if err := os.MkdirAll(o.TempDir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(o.TempDir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), tempPrefix) {
			if err := os.RemoveAll(filepath.Join(o.TempDir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close waits for running queries to be closed and frees the engine. Queries started afterwards fail.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	if e.current != nil {
		e.current.drop()
		e.current = nil
	}
	e.mu.Unlock()
	e.live.Wait()
	C.tm_registry_free(e.registry)
	return nil
}

// instance is one DuckDB database with its count of users; the engine itself is a user of the current one. All of it is
// guarded by Engine.mu.
type instance struct {
	engine  *Engine
	tempDir string // own, "" for none
	db      duckdb.Database
	cells   []scalarCell
	memory  []unsafe.Pointer // of malloc, for as long as the database
	users   int
}

func (in *instance) drop() {
	in.users--
	if in.users > 0 {
		return
	}
	in.close()
	in.engine.live.Done()
}

func (in *instance) close() {
	duckdb.Close(&in.db)
	for _, c := range in.cells {
		c.delete()
	}
	for _, p := range in.memory {
		C.free(p)
	}
	if in.tempDir != "" {
		// What stays behind is removed by the next Open.
		_ = os.RemoveAll(in.tempDir)
	}
}

var errClosed = errors.New("engine: closed")

// acquire gives the current instance, a new one where the last has been thrown away.
func (e *Engine) acquire() (*instance, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errClosed
	}
	if e.current == nil {
		in, err := e.openInstance()
		if err != nil {
			return nil, err
		}
		e.current = in
		e.live.Add(1)
	}
	e.current.users++
	return e.current, nil
}

// release gives an instance back. After an error that leaves DuckDB unusable the instance is not used again.
func (e *Engine) release(in *instance, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if errors.Is(err, ErrBroken) && e.current == in {
		e.opts.Logger.Error("query engine replaced after an internal error", "error", err)
		e.current = nil
		in.drop()
	}
	in.drop()
}

func (e *Engine) openInstance() (*instance, error) {
	e.started++
	in := &instance{engine: e, users: 1}
	if e.opts.TempDir != "" {
		in.tempDir = filepath.Join(e.opts.TempDir, tempPrefix+strconv.Itoa(e.started))
	}
	var config duckdb.Config
	if duckdb.CreateConfig(&config) != duckdb.StateSuccess {
		return nil, errors.New("engine: out of memory")
	}
	defer duckdb.DestroyConfig(&config)
	var message string
	if duckdb.OpenExt(":memory:", &in.db, config, &message) != duckdb.StateSuccess {
		return nil, fmt.Errorf("engine: cannot start: %s", message)
	}
	if err := in.setUp(); err != nil {
		in.close()
		return nil, fmt.Errorf("engine: cannot start: %w", err)
	}
	return in, nil
}

func (in *instance) setUp() error {
	conn, err := in.connect()
	if err != nil {
		return err
	}
	defer duckdb.Disconnect(&conn)
	if err := in.registerFunctions(conn); err != nil {
		return err
	}
	for _, statement := range in.engine.opts.statements(in.tempDir) {
		if err := execute(conn, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func (in *instance) connect() (duckdb.Connection, error) {
	var conn duckdb.Connection
	if duckdb.Connect(in.db, &conn) != duckdb.StateSuccess {
		return conn, errors.New("engine: cannot connect")
	}
	return conn, nil
}

// statements configure a fresh instance. The order matters: directories first, then access off, then the lock.
func (o *Options) statements(tempDir string) []string {
	s := []string{
		fmt.Sprintf("SET memory_limit = '%dB'", o.MemoryLimitBytes),
		fmt.Sprintf("SET threads = %d", o.Threads),
		"SET temp_directory = " + Quote(tempDir),
		"SET TimeZone = 'UTC'",
		"SET parquet_metadata_cache = true",
		// The pages of local files are in the system's cache already, outside the memory limit.
		"SET enable_external_file_cache = false",
		// MySQL sorts NULL before everything.
		"SET default_null_order = 'NULLS_FIRST_ON_ASC_LAST_ON_DESC'",
		// Rows have no order of their own in SQL, and keeping one costs threads and memory.
		"SET preserve_insertion_order = false",
		"SET order_by_non_integer_literal = true",
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"SET allow_community_extensions = false",
		"SET allowed_directories = " + o.allowedDirectories(),
		"SET enable_external_access = false",
		"SET lock_configuration = true",
	}
	if o.TempLimitBytes > 0 {
		s = append([]string{fmt.Sprintf("SET max_temp_directory_size = '%dB'", o.TempLimitBytes)}, s...)
	}
	return s
}

func (o *Options) allowedDirectories() string {
	var dirs []string
	for _, dir := range o.PartDirs {
		dir = strings.TrimRight(dir, "/") + "/"
		dirs = append(dirs, Quote(dir))
		// The check is made on the pattern too, not only on the file it finds.
		if p := escapeGlob(dir); p != dir {
			dirs = append(dirs, Quote(p))
		}
	}
	return "[" + strings.Join(dirs, ", ") + "]"
}

// Quote gives s, which must be valid UTF-8, as a literal of DuckDB's dialect, where backslashes mean nothing and NUL
// cannot stand in a text.
func Quote(s string) string {
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if !strings.Contains(s, "\x00") {
		return quoted
	}
	return "(" + strings.ReplaceAll(quoted, "\x00", "' || chr(0) || '") + ")"
}

// escapeGlob makes a pattern that matches exactly this path: DuckDB takes file names for patterns.
func escapeGlob(path string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(path)
}
