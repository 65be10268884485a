package engine

/*
#include <stdlib.h>
#include "text.h"

typedef void (*tm_callback3)(void *, void *, void *);
*/
import "C"

import (
	"bytes"
	"fmt"
	"unicode/utf8"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"github.com/tidemarkdb/tidemark/query/collate"
)

// Functions of the package that SQL can call. All give NULL when an argument is NULL.
//
//	tm_sortkey(VARCHAR, INTEGER) -> BLOB                          collate.Collation.SortKey; the number is the collation's id
//	tm_equal(VARCHAR, VARCHAR, INTEGER) -> BOOLEAN                 whether the sort keys are equal, without making them
//	tm_like(VARCHAR, VARCHAR, VARCHAR, INTEGER) -> BOOLEAN        text LIKE pattern ESCAPE escape
//	tm_like_bytes(BLOB, BLOB, VARCHAR, INTEGER) -> BOOLEAN        the same for binary strings
//	tm_utc(TIMESTAMP WITH TIME ZONE) -> TIMESTAMP                 the wall clock in UTC
//	tm_div(HUGEINT, HUGEINT) -> HUGEINT                           rounded half away from zero; NULL for a divisor of 0
var (
	sortKeyFunction = ScalarFunction{
		Name: "tm_sortkey", Args: []Type{{ID: Varchar}, {ID: Integer}}, Result: Type{ID: Blob},
	}
	equalFunction = ScalarFunction{
		Name: "tm_equal", Args: []Type{{ID: Varchar}, {ID: Varchar}, {ID: Integer}}, Result: Type{ID: Boolean},
	}
	likeFunction = ScalarFunction{
		Name: "tm_like", Args: []Type{{ID: Varchar}, {ID: Varchar}, {ID: Varchar}, {ID: Integer}}, Result: Type{ID: Boolean},
	}
	likeBytesFunction = ScalarFunction{
		Name: "tm_like_bytes", Args: []Type{{ID: Blob}, {ID: Blob}, {ID: Varchar}, {ID: Integer}}, Result: Type{ID: Boolean},
	}
	divFunction = ScalarFunction{
		Name: "tm_div", Args: []Type{{ID: HugeInt}, {ID: HugeInt}}, Result: Type{ID: HugeInt},
	}
	utcFunction = ScalarFunction{
		Name: "tm_utc", Args: []Type{{ID: TimestampTZ}}, Result: Type{ID: Timestamp},
	}
)

// registerText registers the functions that are written in C.
func (in *instance) registerText(conn duckdb.Connection) error {
	collations := collate.All()
	tables := (*C.tm_collation)(C.calloc(C.size_t(len(collations)), C.size_t(unsafe.Sizeof(C.tm_collation{}))))
	text := (*C.tm_text)(C.calloc(1, C.size_t(unsafe.Sizeof(C.tm_text{}))))
	if tables == nil || text == nil {
		C.free(unsafe.Pointer(tables))
		C.free(unsafe.Pointer(text))
		return errMemory
	}
	in.memory = append(in.memory, unsafe.Pointer(tables), unsafe.Pointer(text))
	for i, c := range collations {
		unsafe.Slice(tables, len(collations))[i] = tableOf(c)
	}
	text.n, text.collations = C.uint64_t(len(collations)), tables
	for _, f := range []struct {
		function *ScalarFunction
		callback C.tm_callback3
	}{
		{&sortKeyFunction, C.tm_callback3(C.tm_sortkey)},
		{&equalFunction, C.tm_callback3(C.tm_equal)},
		{&likeFunction, C.tm_callback3(C.tm_like)},
		{&likeBytesFunction, C.tm_callback3(C.tm_like)},
		{&divFunction, C.tm_callback3(C.tm_div)},
		{&utcFunction, C.tm_callback3(C.tm_as_timestamp)},
	} {
		if err := registerScalar(conn, f.function, unsafe.Pointer(text), unsafe.Pointer(f.callback)); err != nil {
			return err
		}
	}
	return nil
}

func tableOf(c *collate.Collation) C.tm_collation {
	a := c.ASCII()
	t := C.tm_collation{
		id: C.int32_t(c.ID()), keys: C.bool(a.Keys), any_byte: C.bool(a.AnyByte), identity: C.bool(c.Identity()),
		pad: C.bool(a.Pad), unit: C.uint8_t(a.Unit), space: C.uint16_t(a.Space),
		like_binary: C.bool(c.Charset() == "binary"), like_bytes: C.bool(c.CodePoints()),
	}
	for i := range t.weights {
		t.weights[i], t.fold[i] = C.uint16_t(i), C.uint8_t(i)
		if i < utf8.RuneSelf {
			t.weights[i], t.fold[i] = C.uint16_t(a.Weights[i]), C.uint8_t(a.Fold[i])
		}
	}
	return t
}

//export tidemarkSortKeys
func tidemarkSortKeys(info, chunk, result unsafe.Pointer, rows *C.uint32_t, n C.uint64_t) {
	f := sortKeyFunction
	f.Call = func(args []Vector, result *Result) error {
		var key []byte
		ids := args[1].Int32s()
		for _, row := range unsafe.Slice((*uint32)(rows), n) {
			c, err := collationOf(ids[row])
			if err != nil {
				return err
			}
			key = c.SortKey(key[:0], args[0].Bytes(int(row)))
			result.SetBytes(int(row), key)
		}
		return nil
	}
	reportTo(info, f.run(chunk, result))
}

//export tidemarkEquals
func tidemarkEquals(info, chunk, result unsafe.Pointer, rows *C.uint32_t, n C.uint64_t) {
	f := equalFunction
	f.Call = func(args []Vector, result *Result) error {
		var a, b []byte
		out, ids := result.Bools(), args[2].Int32s()
		for _, row := range unsafe.Slice((*uint32)(rows), n) {
			c, err := collationOf(ids[row])
			if err != nil {
				return err
			}
			a, b = c.SortKey(a[:0], args[0].Bytes(int(row))), c.SortKey(b[:0], args[1].Bytes(int(row)))
			out[row] = bytes.Equal(a, b)
		}
		return nil
	}
	reportTo(info, f.run(chunk, result))
}

//export tidemarkLikes
func tidemarkLikes(info, chunk, result unsafe.Pointer, rows *C.uint32_t, n C.uint64_t) {
	f := likeFunction
	f.Call = func(args []Vector, result *Result) error {
		var patterns lastPattern
		out, ids := result.Bools(), args[3].Int32s()
		for _, row := range unsafe.Slice((*uint32)(rows), n) {
			p, err := patterns.get(ids[row], args[1].Text(int(row)), args[2].Text(int(row)))
			if err != nil {
				return err
			}
			out[row] = p.Match(args[0].Bytes(int(row)))
		}
		return nil
	}
	reportTo(info, f.run(chunk, result))
}

func reportTo(info unsafe.Pointer, err error) {
	if err != nil {
		duckdb.ScalarFunctionSetError(duckdb.FunctionInfo{Ptr: info}, err.Error())
	}
}

func collationOf(id int32) (*collate.Collation, error) {
	if c := collate.ByID(int(id)); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("collation %d is not supported", id)
}

// lastPattern keeps the pattern of the row before, which is nearly always that of the next.
type lastPattern struct {
	id             int32
	pattern, given string
	compiled       *collate.Pattern
}

func (l *lastPattern) get(id int32, pattern, escape string) (*collate.Pattern, error) {
	if l.compiled != nil && l.id == id && l.pattern == pattern && l.given == escape {
		return l.compiled, nil
	}
	c, err := collationOf(id)
	if err != nil {
		return nil, err
	}
	e := collate.EmptyEscape
	if escape != "" {
		var size int
		if e, size = utf8.DecodeRuneInString(escape); size != len(escape) {
			return nil, fmt.Errorf("the escape of LIKE has more than one character")
		}
	}
	l.id, l.pattern, l.given, l.compiled = id, pattern, escape, c.Pattern([]byte(pattern), e)
	return l.compiled, nil
}
