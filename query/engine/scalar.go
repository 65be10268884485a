package engine

/*
#include <stdlib.h>
#include "scan.h"
#include "text.h"
#include "duckdb_abi.h"

extern void tidemarkScalar(void *info, void *chunk, void *result);

typedef void (*tm_callback3)(void *, void *, void *);
*/
import "C"

import (
	"fmt"
	"runtime/cgo"
	"unicode/utf8"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// ScalarFunction is a function over chunks of rows that SQL can call. It must be pure: DuckDB may call it once for many
// equal rows, from several threads at a time, and before the query runs.
type ScalarFunction struct {
	Name   string
	Args   []Type
	Result Type
	// Call computes all rows of the result. Arguments may be NULL in any row; see [Result.SetNull]. An error ends the query
	// with its text.
	Call func(args []Vector, result *Result) error
}

// Result takes the rows of a scalar function. Fixed-width values are written into the slices that the embedded Vector
// gives, text by SetBytes and SetText, each row at most once.
type Result struct {
	Vector
	// Texts are gathered here and set by one call into C.
	texts []byte
	ends  []uint64
	at    []uint32
}

// SetNull makes the value of a row NULL.
func (r *Result) SetNull(row int) {
	if r.validity == nil {
		C.duckdb_vector_ensure_validity_writable(r.raw)
		r.validity = unsafe.Pointer(C.duckdb_vector_get_validity(r.raw))
	}
	words := unsafe.Slice((*uint64)(r.validity), row>>6+1)
	words[row>>6] &^= 1 << (row & 63)
}

// SetBytes sets a BLOB value, or a VARCHAR value, which must be valid UTF-8. The bytes are copied.
func (r *Result) SetBytes(row int, b []byte) {
	r.SetText(row, unsafe.String(unsafe.SliceData(b), len(b)))
}

// SetText sets a VARCHAR or BLOB value. The text is copied.
func (r *Result) SetText(row int, s string) {
	if row < 0 || row >= r.rows {
		panic(fmt.Sprintf("row %d of a result of %d rows", row, r.rows))
	}
	if r.Type.ID == Varchar && !utf8.ValidString(s) {
		panic(fmt.Sprintf("a VARCHAR value is not valid UTF-8: %q", s))
	}
	r.texts = append(r.texts, s...)
	r.ends = append(r.ends, uint64(len(r.texts)))
	r.at = append(r.at, uint32(row))
}

// flush hands the texts to DuckDB.
func (r *Result) flush() {
	if len(r.at) == 0 {
		return
	}
	C.tm_assign(r.raw, C.uint64_t(len(r.at)), (*C.uint32_t)(&r.at[0]), (*C.uint64_t)(&r.ends[0]), (*C.char)(unsafe.Pointer(unsafe.SliceData(r.texts))))
}

// scalarCell is a registered function's Go handle, in memory that DuckDB hands to the callback.
type scalarCell struct {
	handle cgo.Handle
	cell   *C.uintptr_t
}

func newCell(v any) scalarCell {
	h := cgo.NewHandle(v)
	return scalarCell{handle: h, cell: C.tm_cell(C.uintptr_t(h))}
}

func (c scalarCell) delete() {
	c.handle.Delete()
	C.free(unsafe.Pointer(c.cell))
}

func cellValue(p unsafe.Pointer) any { return cgo.Handle(*(*C.uintptr_t)(p)).Value() }

func (in *instance) registerFunctions(conn duckdb.Connection) error {
	if err := in.registerScan(conn); err != nil {
		return err
	}
	if err := in.registerText(conn); err != nil {
		return err
	}
	functions := append(append(builtins(), mysqlFunctions()...), in.engine.opts.Functions...)
	for i := range functions {
		f := &functions[i]
		cell := newCell(f)
		in.cells = append(in.cells, cell)
		callback := unsafe.Pointer(C.tm_callback3(C.tidemarkScalar))
		if err := registerScalar(conn, f, unsafe.Pointer(cell.cell), callback); err != nil {
			return err
		}
	}
	return nil
}

func registerScalar(conn duckdb.Connection, f *ScalarFunction, extra, callback unsafe.Pointer) error {
	fn := duckdb.CreateScalarFunction()
	defer duckdb.DestroyScalarFunction(&fn)
	duckdb.ScalarFunctionSetName(fn, f.Name)
	for _, t := range f.Args {
		arg := t.logical()
		duckdb.ScalarFunctionAddParameter(fn, arg)
		duckdb.DestroyLogicalType(&arg)
	}
	result := f.Result.logical()
	duckdb.ScalarFunctionSetReturnType(fn, result)
	duckdb.DestroyLogicalType(&result)
	duckdb.ScalarFunctionSetExtraInfo(fn, extra, nil)
	// Without this DuckDB would take a call with a NULL literal for NULL, whatever the function makes of it.
	duckdb.ScalarFunctionSetSpecialHandling(fn)
	duckdb.ScalarFunctionSetFunction(fn, callback)
	if duckdb.RegisterScalarFunction(conn, fn) != duckdb.StateSuccess {
		return fmt.Errorf("cannot register function %s", f.Name)
	}
	return nil
}

//export tidemarkScalar
func tidemarkScalar(info, chunk, result unsafe.Pointer) {
	fi := duckdb.FunctionInfo{Ptr: info}
	f := cellValue(C.duckdb_scalar_function_get_extra_info(info)).(*ScalarFunction)
	if err := f.run(chunk, result); err != nil {
		duckdb.ScalarFunctionSetError(fi, err.Error())
	}
}

// run calls the function. A panic must not pass through C++ frames; it becomes the query's error.
func (f *ScalarFunction) run(chunk, result unsafe.Pointer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("function %s: %v", f.Name, p)
		}
	}()
	rows := int(C.duckdb_data_chunk_get_size(chunk))
	args := make([]Vector, len(f.Args))
	for i := range args {
		v := C.duckdb_data_chunk_get_vector(chunk, C.uint64_t(i))
		args[i] = vectorAt(v, f.Args[i], rows)
	}
	r := Result{Vector: vectorAt(result, f.Result, rows)}
	if err := f.Call(args, &r); err != nil {
		return err
	}
	r.flush()
	return nil
}

func vectorAt(v unsafe.Pointer, t Type, rows int) Vector {
	return Vector{
		Type: t, raw: v, rows: rows,
		data:     C.duckdb_vector_get_data(v),
		validity: unsafe.Pointer(C.duckdb_vector_get_validity(v)),
	}
}
