package engine

/*
#include <stdlib.h>
#include "scan.h"

typedef void (*tm_callback3)(void *, void *, void *);
typedef void (*tm_callback2)(void *, void *);
typedef void (*tm_callback1)(void *);

extern void tidemarkSegmentsBind(void *info);
extern void tidemarkSegmentsInit(void *info);
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	duckdb "github.com/duckdb/duckdb-go-bindings"

	"github.com/tidemarkdb/tidemark/schema"
)

// segmentScan is the segments of one scan. DuckDB binds and starts it once for each place in a query that names it.
type segmentScan struct {
	handle   *handle
	columns  []ScanColumn // the hidden column is the last
	initials map[uint32]initial
	segments []boundSegment
	rows     int64 // dead ones included

	mu sync.Mutex // guards handle.pins
}

// addSegments makes the segments ready.
func (s *Scan) addSegments(segments []boundSegment) error {
	g := &segmentScan{handle: &handle{engine: s.engine}, initials: s.initials}
	g.columns = append(slices.Clone(s.columns), ScanColumn{ID: schema.ExactFieldID, Name: ExactColumn, Type: Type{ID: Blob}})
	for i := range segments {
		rows := segments[i].Record.NumRows()
		dead := countDead(segments[i].Dead, rows)
		if dead == rows {
			continue
		}
		s.rows += rows - dead
		g.rows += rows
		g.segments = append(g.segments, segments[i].withExact(s.missingExact(segments[i].has)))
	}
	bitsets := newBitsets(0)
	if bitsets == nil {
		return errMemory
	}
	if err := s.register(g.handle, bitsets, 0); err != nil {
		return err
	}
	s.engine.addSegments(g)
	s.branches = append(s.branches, func(p projection) string {
		return fmt.Sprintf("SELECT %s FROM %s(%d::UBIGINT)", p.list(""), segmentsFunction, g.handle.id)
	})
	return nil
}

func (e *Engine) addSegments(g *segmentScan) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.scans[g.handle.id] = g
}

func (e *Engine) dropSegments(handle uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.scans, handle)
}

func (e *Engine) segments(handle uint64) (*segmentScan, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.scans[handle]
	if g == nil {
		return nil, errors.New("scan: stale handle")
	}
	return g, nil
}

// registerScan makes the two functions behind scans known to DuckDB.
func (in *instance) registerScan(conn duckdb.Connection) error {
	alive := &ScalarFunction{
		Name: aliveFunction, Args: []Type{{ID: UBigInt}, {ID: UBigInt}, {ID: BigInt}}, Result: Type{ID: Boolean},
	}
	if err := registerScalar(conn, alive, unsafe.Pointer(in.engine.registry), unsafe.Pointer(C.tm_callback3(C.tm_alive))); err != nil {
		return err
	}
	cell := newCell(in.engine)
	in.cells = append(in.cells, cell)
	f := duckdb.CreateTableFunction()
	defer duckdb.DestroyTableFunction(&f)
	duckdb.TableFunctionSetName(f, segmentsFunction)
	handle := Type{ID: UBigInt}.logical()
	duckdb.TableFunctionAddParameter(f, handle)
	duckdb.DestroyLogicalType(&handle)
	duckdb.TableFunctionSetExtraInfo(f, unsafe.Pointer(cell.cell), nil)
	duckdb.TableFunctionSetBind(f, unsafe.Pointer(C.tm_callback1(C.tidemarkSegmentsBind)))
	duckdb.TableFunctionSetInit(f, unsafe.Pointer(C.tm_callback1(C.tidemarkSegmentsInit)))
	duckdb.TableFunctionSetFunction(f, unsafe.Pointer(C.tm_callback2(C.tm_segments)))
	duckdb.TableFunctionSupportsProjectionPushdown(f, true)
	if duckdb.RegisterTableFunction(conn, f) != duckdb.StateSuccess {
		return fmt.Errorf("cannot register function %s", segmentsFunction)
	}
	return nil
}

//export tidemarkSegmentsBind
func tidemarkSegmentsBind(info unsafe.Pointer) {
	bi := duckdb.BindInfo{Ptr: info}
	e := cellValue(duckdb.BindGetExtraInfo(bi)).(*Engine)
	id := handleParameter(bi)
	g, err := e.segments(id)
	if err != nil {
		duckdb.BindSetError(bi, err.Error())
		return
	}
	for _, c := range g.columns {
		t := c.Type.logical()
		duckdb.BindAddResultColumn(bi, c.Name, t)
		duckdb.DestroyLogicalType(&t)
	}
	duckdb.BindSetCardinality(bi, duckdb.IdxT(g.rows), true)
	duckdb.BindSetBindData(bi, unsafe.Pointer(C.tm_cell(C.uintptr_t(id))), unsafe.Pointer(C.tm_callback1(C.free)))
}

// handleParameter reads the handle; 0, which is no handle, for NULL. Asking DuckDB for the number in a NULL ends the
// process.
func handleParameter(bi duckdb.BindInfo) uint64 {
	parameter := duckdb.BindGetParameter(bi, 0)
	defer duckdb.DestroyValue(&parameter)
	if duckdb.IsNullValue(parameter) {
		return 0
	}
	return duckdb.GetUInt64(parameter)
}

//export tidemarkSegmentsInit
func tidemarkSegmentsInit(info unsafe.Pointer) {
	ii := duckdb.InitInfo{Ptr: info}
	e := cellValue(duckdb.InitGetExtraInfo(ii)).(*Engine)
	id := uint64(*(*C.uintptr_t)(duckdb.InitGetBindData(ii)))
	g, err := e.segments(id)
	if err != nil {
		duckdb.InitSetError(ii, err.Error())
		return
	}
	projection := make([]uint64, duckdb.InitGetColumnCount(ii))
	for i := range projection {
		projection[i] = uint64(duckdb.InitGetColumnIndex(ii, duckdb.IdxT(i)))
	}
	scan, err := g.start(projection)
	if err != nil {
		duckdb.InitSetError(ii, err.Error())
		return
	}
	duckdb.InitSetInitData(ii, unsafe.Pointer(scan), unsafe.Pointer(C.tm_callback1(C.tm_scan_free)))
	duckdb.InitSetMaxThreads(ii, duckdb.IdxT(min(int64(e.opts.Threads), g.rows/rowsPerThread+1)))
}

// A thread is not worth starting for fewer rows.
const rowsPerThread = 16384

// start makes the C form of the segments with the projected columns only and pins the memory that it points to, until
// the handle is released.
func (g *segmentScan) start(projection []uint64) (*C.tm_scan, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	scan := C.tm_scan_new(g.handle.engine.registry, C.uint64_t(g.handle.id), C.uint64_t(len(g.segments)), C.uint64_t(len(projection)))
	if scan == nil {
		return nil, errMemory
	}
	if err := g.fill(scan, projection); err != nil {
		C.tm_scan_free(unsafe.Pointer(scan))
		return nil, err
	}
	if problem := C.tm_scan_check(scan); problem != nil {
		C.tm_scan_free(unsafe.Pointer(scan))
		return nil, errors.New("segment: " + C.GoString(problem))
	}
	return scan, nil
}

func (g *segmentScan) fill(scan *C.tm_scan, projection []uint64) error {
	pins := &g.handle.pins
	segments := unsafe.Slice(scan.segments, len(g.segments))
	for i := range g.segments {
		rows := g.segments[i].Record.NumRows()
		segments[i].first, segments[i].rows = scan.rows, C.uint64_t(rows)
		segments[i].dead = bitset(pins, g.segments[i].Dead, rows)
		scan.rows += C.uint64_t(rows)
		columns := unsafe.Slice(segments[i].columns, len(projection))
		for j, p := range projection {
			// DuckDB asks for numbers beyond the columns when it needs the rows only, not their values.
			if p >= uint64(len(g.columns)) {
				continue
			}
			if err := g.column(pins, &columns[j], &g.segments[i], int(p)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *segmentScan) column(pins *runtime.Pinner, out *C.tm_column, from *boundSegment, i int) error {
	c := &g.columns[i]
	a := from.column(i)
	if a == nil {
		if a = g.initials[c.ID].value; a == nil {
			a = array.NewNull(1)
		}
		out.constant = 1
	}
	if a.DataType().ID() == arrow.NULL {
		nullColumn(pins, out)
		return nil
	}
	if out.constant == 0 && int64(a.Len()) < from.Record.NumRows() {
		return fmt.Errorf("segment: column %s has %d values for %d rows", c.Name, a.Len(), from.Record.NumRows())
	}
	return carry(pins, out, a, c)
}

// nullColumn makes a constant column without a value: a bitmap of one zero bit.
func nullColumn(pins *runtime.Pinner, out *C.tm_column) {
	bitmap := new(uint8)
	pins.Pin(bitmap)
	out.constant = 1
	out.validity = (*C.uint8_t)(unsafe.Pointer(bitmap))
}

// carry describes an array to C. It checks that every buffer is as long as the array's rows need.
func carry(pins *runtime.Pinner, out *C.tm_column, a arrow.Array, c *ScanColumn) error {
	kind, width, err := copyKind(a.DataType(), c.Type)
	if err != nil {
		return fmt.Errorf("segment: column %s: %w", c.Name, err)
	}
	data := a.Data()
	end := int64(data.Offset() + data.Len())
	out.kind, out.offset = C.int32_t(kind), C.int64_t(data.Offset())
	if a.NullN() > 0 {
		bitmap := pinned(pins, data, 0, (end+7)/8)
		if bitmap == nil {
			return errShort(c, data)
		}
		out.validity = (*C.uint8_t)(bitmap)
	}
	if kind != C.TM_BYTES && kind != C.TM_TEXT {
		if out.data = pinned(pins, data, 1, end*width); out.data == nil && end > 0 {
			return errShort(c, data)
		}
		return nil
	}
	offsets := pinned(pins, data, 1, (end+1)*4)
	if offsets == nil {
		return errShort(c, data)
	}
	out.offsets = (*C.int32_t)(offsets)
	out.data = pinned(pins, data, 2, 0)
	if b := data.Buffers()[2]; b != nil {
		out.data_bytes = C.uint64_t(b.Len())
	}
	return nil
}

func errShort(c *ScanColumn, data arrow.ArrayData) error {
	return fmt.Errorf("segment: column %s: a buffer is too short for %d rows", c.Name, data.Len())
}

// pinned gives a buffer's memory, pinned; nil when the buffer has no memory or less than needed.
func pinned(pins *runtime.Pinner, data arrow.ArrayData, i int, need int64) unsafe.Pointer {
	buffers := data.Buffers()
	if i >= len(buffers) || buffers[i] == nil || buffers[i].Len() == 0 || int64(buffers[i].Len()) < need {
		return nil
	}
	p := &buffers[i].Bytes()[0]
	pins.Pin(p)
	return unsafe.Pointer(p)
}

// copyKind says how values of an Arrow type get into a vector of a DuckDB type, and the bytes of an Arrow value.
func copyKind(from arrow.DataType, to Type) (kind int, width int64, err error) {
	switch from.ID() {
	case arrow.INT32, arrow.FLOAT32, arrow.DATE32:
		kind, width = C.TM_COPY_4, 4
	case arrow.INT64, arrow.UINT64, arrow.FLOAT64, arrow.TIMESTAMP:
		kind, width = C.TM_COPY_8, 8
	case arrow.BINARY:
		kind = C.TM_BYTES
	case arrow.STRING:
		kind = C.TM_TEXT
	case arrow.DECIMAL128:
		kind, width = decimalKind(to.Width), 16
	}
	if kind == 0 || !carriesTo(from, to) {
		return 0, 0, fmt.Errorf("holds %s where the schema says %s", from, to)
	}
	return kind, width, nil
}

func decimalKind(width uint8) int {
	switch {
	case width <= 4:
		return C.TM_DECIMAL_2
	case width <= 9:
		return C.TM_DECIMAL_4
	case width <= 18:
		return C.TM_DECIMAL_8
	default:
		return C.TM_COPY_16
	}
}

// carriesTo tells whether the array's type is the one that the schema has for the column.
func carriesTo(from arrow.DataType, to Type) bool {
	switch t := from.(type) {
	case *arrow.Decimal128Type:
		return to.ID == Decimal && t.Precision == int32(to.Width) && t.Scale == int32(to.Scale)
	case *arrow.TimestampType:
		return t.Unit == arrow.Microsecond && (to.ID == Timestamp || to.ID == TimestampTZ)
	case *arrow.Uint64Type:
		return to.ID == BigInt || to.ID == UBigInt
	default:
		return arrowTypes[t.ID()] == to.ID
	}
}
