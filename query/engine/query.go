package engine

/*
#include "scan.h"
*/
import "C"

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// ResultColumn is one column of a result.
type ResultColumn struct {
	Name string
	Type Type
}

// Rows is a running query. It belongs to one goroutine and must be closed.
type Rows struct {
	ctx      context.Context
	engine   *Engine
	instance *instance
	conn     duckdb.Connection
	prepared duckdb.PreparedStatement
	result   duckdb.Result
	started  bool // result holds something to destroy
	columns  []ResultColumn
	chunk    Chunk
	scans    []*Scan
	stopStop func()
	err      error
	closed   bool
}

// Query starts one statement and gives its rows. It owns the scans from now on, whatever it returns: they are closed
// with the rows, or at once when it fails. When ctx ends, the query is stopped, wherever it is.
func (e *Engine) Query(ctx context.Context, sql string, scans ...*Scan) (*Rows, error) {
	r := &Rows{ctx: ctx, engine: e, scans: scans}
	if err := r.start(sql); err != nil {
		r.err = err
		r.Close()
		return nil, err
	}
	return r, nil
}

// Describe gives the columns that a statement would return, without running it. The scans stay the caller's.
func (e *Engine) Describe(ctx context.Context, sql string) ([]ResultColumn, error) {
	r := &Rows{ctx: ctx, engine: e}
	defer r.Close()
	if err := r.prepare(sql); err != nil {
		r.err = err
		return nil, err
	}
	return describePrepared(r.prepared)
}

func (r *Rows) prepare(sql string) error {
	if err := r.ctx.Err(); err != nil {
		return &Error{Kind: KindInterrupted, Message: "stopped before it began", cause: context.Cause(r.ctx)}
	}
	// DuckDB would read up to the NUL and run that.
	if strings.Contains(sql, "\x00") || !utf8.ValidString(sql) {
		return &Error{Kind: KindSyntax, Message: "the statement has a NUL character or is not valid UTF-8"}
	}
	in, err := r.engine.acquire()
	if err != nil {
		return err
	}
	r.instance = in
	if r.conn, err = in.connect(); err != nil {
		return err
	}
	r.stopStop = interruptOnDone(r.ctx, r.conn)
	if duckdb.Prepare(r.conn, sql, &r.prepared) != duckdb.StateSuccess {
		message := duckdb.PrepareError(r.prepared)
		return newError(r.ctx, errorTypeOf(message), message)
	}
	return nil
}

func (r *Rows) start(sql string) error {
	if err := r.prepare(sql); err != nil {
		return err
	}
	state := duckdb.ExecutePreparedStreaming(r.prepared, &r.result)
	r.started = true
	if state != duckdb.StateSuccess {
		return newError(r.ctx, duckdb.ResultErrorType(&r.result), duckdb.ResultError(&r.result))
	}
	n := int(duckdb.ColumnCount(&r.result))
	r.columns = make([]ResultColumn, n)
	for i := range r.columns {
		t := duckdb.ColumnLogicalType(&r.result, duckdb.IdxT(i))
		r.columns[i] = ResultColumn{Name: duckdb.ColumnName(&r.result, duckdb.IdxT(i)), Type: typeOf(t)}
		duckdb.DestroyLogicalType(&t)
	}
	r.chunk.init(r.columns)
	return nil
}

func describePrepared(p duckdb.PreparedStatement) ([]ResultColumn, error) {
	columns := make([]ResultColumn, duckdb.PreparedStatementColumnCount(p))
	for i := range columns {
		t := duckdb.PreparedStatementColumnLogicalType(p, duckdb.IdxT(i))
		columns[i] = ResultColumn{Name: duckdb.PreparedStatementColumnName(p, duckdb.IdxT(i)), Type: typeOf(t)}
		duckdb.DestroyLogicalType(&t)
	}
	return columns, nil
}

// Columns gives the result's columns.
func (r *Rows) Columns() []ResultColumn { return r.columns }

// Next gives the next chunk, which is valid until the next call of Next or Close. The last chunk is followed by io.EOF.
func (r *Rows) Next() (*Chunk, error) {
	if r.err != nil {
		return nil, r.err
	}
	r.chunk.release()
	if r.chunk.raw = duckdb.FetchChunk(r.result); r.chunk.raw.Ptr == nil {
		r.err = io.EOF
		if message := duckdb.ResultError(&r.result); message != "" {
			r.err = newError(r.ctx, duckdb.ResultErrorType(&r.result), message)
		}
		return nil, r.err
	}
	if r.chunk.load(); r.chunk.rows == 0 {
		r.chunk.release()
		r.err = io.EOF
		return nil, r.err
	}
	return &r.chunk, nil
}

// Close stops the query when it still runs, frees its memory and closes its scans. Calling it again does nothing.
func (r *Rows) Close() {
	if r.closed {
		return
	}
	r.closed = true
	r.chunk.release()
	if r.started {
		duckdb.DestroyResult(&r.result)
	}
	duckdb.DestroyPrepare(&r.prepared)
	if r.stopStop != nil {
		r.stopStop()
	}
	if r.conn.Ptr != nil {
		duckdb.Disconnect(&r.conn)
	}
	// Only now no vector points into the scans' memory any more.
	for _, s := range r.scans {
		s.Close()
	}
	if r.instance != nil {
		r.engine.release(r.instance, r.err)
	}
	if r.err == nil {
		r.err = errRowsClosed
	}
}

var errRowsClosed = errors.New("engine: rows are closed")

// DuckDB forgets an interrupt that comes just before a statement starts, so it is repeated until the query is over.
const interruptEvery = 5 * time.Millisecond

// interruptOnDone interrupts the connection's statement when ctx ends. The returned function ends that; when it has
// returned, nothing touches the connection any more.
func interruptOnDone(ctx context.Context, conn duckdb.Connection) (stop func()) {
	over := make(chan struct{})
	var interrupter sync.WaitGroup
	interrupter.Add(1)
	stopAfter := context.AfterFunc(ctx, func() {
		defer interrupter.Done()
		for {
			duckdb.Interrupt(conn)
			select {
			case <-over:
				return
			case <-time.After(interruptEvery):
			}
		}
	})
	return func() {
		close(over)
		if !stopAfter() {
			interrupter.Wait()
		}
	}
}

// execute runs a statement for its effect.
func execute(conn duckdb.Connection, sql string) error {
	var result duckdb.Result
	state := duckdb.Query(conn, sql, &result)
	defer duckdb.DestroyResult(&result)
	if state != duckdb.StateSuccess {
		return newError(context.Background(), duckdb.ResultErrorType(&result), duckdb.ResultError(&result))
	}
	return nil
}

// Chunk is up to 2048 rows of a result, column by column, in DuckDB's memory.
type Chunk struct {
	raw     duckdb.DataChunk
	rows    int
	vectors []Vector
	// where tm_vectors leaves its pointers
	handles  []unsafe.Pointer
	data     []unsafe.Pointer
	validity []*C.uint64_t
}

func (c *Chunk) init(columns []ResultColumn) {
	n := len(columns)
	c.vectors = make([]Vector, n)
	for i := range c.vectors {
		c.vectors[i].Type = columns[i].Type
	}
	c.handles, c.data, c.validity = make([]unsafe.Pointer, n), make([]unsafe.Pointer, n), make([]*C.uint64_t, n)
}

func (c *Chunk) load() {
	c.rows = int(duckdb.DataChunkGetSize(c.raw))
	n := len(c.vectors)
	if n == 0 {
		return
	}
	C.tm_vectors(c.raw.Ptr, C.uint64_t(n), &c.handles[0], &c.data[0], &c.validity[0])
	for i := range c.vectors {
		c.vectors[i].set(c.handles[i], c.data[i], unsafe.Pointer(c.validity[i]), c.rows)
	}
}

func (c *Chunk) release() {
	if c.raw.Ptr != nil {
		duckdb.DestroyDataChunk(&c.raw)
	}
	c.rows = 0
	for i := range c.vectors {
		c.vectors[i].set(nil, nil, nil, 0)
	}
}

// Len is the number of rows.
func (c *Chunk) Len() int { return c.rows }

// Vector gives column i.
func (c *Chunk) Vector(i int) *Vector { return &c.vectors[i] }
