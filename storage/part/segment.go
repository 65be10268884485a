package part

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
)

// The segment header, little-endian: magic, version, compression, 2 bytes zero, schema version, rows, columns, body
// length before compression, checksum of header (with this field zero) and stored body. See docs/format/segment.md.
const (
	segmentMagic   = "TMSG"
	segmentVersion = 1
	headerBytes    = 40
	checksumAt     = 32

	storedPlain = 0
	storedZstd  = 1

	// compressFrom is the body size from which compression pays.
	compressFrom = 512
	// maxBody bounds what a damaged header can make the decoder allocate.
	maxBody = 8 << 30
)

// Kinds of stored arrays. The numbers are on disk.
const (
	kindInt32 = iota + 1
	kindInt64
	kindUint64
	kindFloat32
	kindFloat64
	kindDate32
	kindTimestamp
	kindDecimal128
	kindString
	kindBinary
)

var kindWidth = map[byte]int{kindInt32: 4, kindInt64: 8, kindUint64: 8, kindFloat32: 4, kindFloat64: 8, kindDate32: 4, kindTimestamp: 8, kindDecimal128: 16}

// The codecs are stateless for EncodeAll and DecodeAll and cost megabytes each, so one pair serves all segments.
var (
	zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
		if err != nil {
			panic(err)
		}
		return e
	})
	zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxBody))
		if err != nil {
			panic(err)
		}
		return d
	})
)

// EncodeSegment gives the stored form of a batch. Keys are not stored: DecodeSegment computes them anew.
func EncodeSegment(b *column.Batch) ([]byte, error) {
	var body []byte
	columns := 0
	for i := range b.Table.Columns {
		var err error
		if body, err = appendArray(body, b.Table.Columns[i].ID, b.Record.Column(i)); err != nil {
			return nil, fmt.Errorf("table %s, column %s: %w", b.Table.FullName(), b.Table.Columns[i].Name, err)
		}
		columns++
	}
	if b.Exact != nil {
		var err error
		if body, err = appendArray(body, schema.ExactFieldID, b.Exact); err != nil {
			return nil, fmt.Errorf("table %s, exact values: %w", b.Table.FullName(), err)
		}
		columns++
	}
	if b.Table.Multiset() {
		if b.Numbers == nil {
			return nil, fmt.Errorf("table %s: %w", b.Table.FullName(), errNoNumbers)
		}
		var err error
		if body, err = appendArray(body, schema.NumberFieldID, b.Numbers); err != nil {
			return nil, fmt.Errorf("table %s, row numbers: %w", b.Table.FullName(), err)
		}
		columns++
	}
	head := make([]byte, headerBytes, headerBytes+len(body))
	copy(head, segmentMagic)
	head[4] = segmentVersion
	binary.LittleEndian.PutUint32(head[8:], b.Table.Version)
	binary.LittleEndian.PutUint32(head[12:], uint32(b.Rows()))
	binary.LittleEndian.PutUint32(head[16:], uint32(columns))
	binary.LittleEndian.PutUint64(head[24:], uint64(len(body)))
	out := head
	if len(body) >= compressFrom {
		out[5] = storedZstd
		out = zstdEncoder().EncodeAll(body, out)
	} else {
		out = append(out, body...)
	}
	binary.LittleEndian.PutUint64(out[checksumAt:], xxhash.Sum64(out))
	return out, nil
}

// appendArray appends: column id u32, kind u8, has-nulls u8, 2 bytes zero; the validity bitmap when there are nulls;
// then the values, or the offsets and the bytes. Each buffer starts at a multiple of 8.
func appendArray(dst []byte, id uint32, a arrow.Array) ([]byte, error) {
	kind, values, err := fixedValues(a)
	if err != nil {
		return nil, err
	}
	hasNulls := byte(0)
	if a.NullN() > 0 {
		hasNulls = 1
	}
	dst = binary.LittleEndian.AppendUint32(dst, id)
	dst = append(dst, kind, hasNulls, 0, 0)
	if hasNulls == 1 {
		bitmap := make([]byte, bitutil.BytesForBits(int64(a.Len())))
		for i := range a.Len() {
			if a.IsValid(i) {
				bitutil.SetBit(bitmap, i)
			}
		}
		dst = pad(append(dst, bitmap...))
	}
	if values != nil || kindWidth[kind] > 0 {
		return pad(append(dst, values...)), nil
	}
	return appendVariable(dst, a.(array.BinaryLike)), nil
}

func appendVariable(dst []byte, a array.BinaryLike) []byte {
	end := uint32(0)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	for i := range a.Len() {
		end += uint32(a.ValueLen(i))
		dst = binary.LittleEndian.AppendUint32(dst, end)
	}
	return pad(append(pad(dst), a.ValueBytes()...))
}

func pad(b []byte) []byte {
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

func fixedValues(a arrow.Array) (kind byte, values []byte, err error) {
	switch a := a.(type) {
	case *array.Int32:
		return kindInt32, arrow.Int32Traits.CastToBytes(a.Int32Values()), nil
	case *array.Int64:
		return kindInt64, arrow.Int64Traits.CastToBytes(a.Int64Values()), nil
	case *array.Uint64:
		return kindUint64, arrow.Uint64Traits.CastToBytes(a.Uint64Values()), nil
	case *array.Float32:
		return kindFloat32, arrow.Float32Traits.CastToBytes(a.Float32Values()), nil
	case *array.Float64:
		return kindFloat64, arrow.Float64Traits.CastToBytes(a.Float64Values()), nil
	case *array.Date32:
		return kindDate32, arrow.Date32Traits.CastToBytes(a.Date32Values()), nil
	case *array.Timestamp:
		return kindTimestamp, arrow.TimestampTraits.CastToBytes(a.TimestampValues()), nil
	case *array.Decimal128:
		return kindDecimal128, arrow.Decimal128Traits.CastToBytes(a.Values()), nil
	case *array.String:
		return kindString, nil, nil
	case *array.Binary:
		return kindBinary, nil, nil
	}
	return 0, nil, fmt.Errorf("no stored column has type %s", a.DataType())
}

// kindOf gives the kind of a stored type.
func kindOf(t arrow.DataType) byte {
	switch t.ID() {
	case arrow.INT32:
		return kindInt32
	case arrow.INT64:
		return kindInt64
	case arrow.UINT64:
		return kindUint64
	case arrow.FLOAT32:
		return kindFloat32
	case arrow.FLOAT64:
		return kindFloat64
	case arrow.DATE32:
		return kindDate32
	case arrow.TIMESTAMP:
		return kindTimestamp
	case arrow.DECIMAL128:
		return kindDecimal128
	case arrow.BINARY:
		return kindBinary
	default:
		return kindString
	}
}

// cursor reads a segment's body. The first error sticks.
type cursor struct {
	b   []byte
	err error
}

var errShort = errors.New("it ends early")

func (c *cursor) take(n int) []byte {
	if c.err != nil || n < 0 || n > len(c.b) {
		if c.err == nil {
			c.err = errShort
		}
		return nil
	}
	out := c.b[:n:n]
	c.b = c.b[n:]
	return out
}

// padded takes n bytes and the padding behind them.
func (c *cursor) padded(n int) []byte {
	out := c.take(n)
	c.take((8 - n%8) % 8)
	return out
}

// DecodeSegment reads a segment, mapped to a version of the table as Reader.Batches does it. Damaged bytes give a
// DamageError without a path.
func DecodeSegment(b []byte, t *schema.Table) (*column.Batch, error) {
	rows, columns, body, err := segmentBody(b)
	if err != nil {
		return nil, &DamageError{Path: "a segment of " + t.FullName(), Reason: err.Error()}
	}
	present := t.Clone()
	present.Columns, present.Key, present.Version = nil, nil, ^t.Version
	out := &column.Batch{Table: present}
	var arrays []arrow.Array
	c := &cursor{b: body}
	for range columns {
		id, a := c.array(rows, t)
		if c.err != nil {
			return nil, &DamageError{Path: "a segment of " + t.FullName(), Reason: c.err.Error()}
		}
		switch at := t.ColumnByID(id); {
		case id == schema.ExactFieldID:
			out.Exact = a.(*array.Binary)
		case id == schema.NumberFieldID:
			out.Numbers = a.(*array.Int64)
		case at >= 0:
			present.Columns = append(present.Columns, t.Columns[at])
			arrays = append(arrays, a)
		}
	}
	if t.Multiset() && (out.Numbers == nil || out.Numbers.NullN() > 0) {
		return nil, &DamageError{Path: "a segment of " + t.FullName(), Reason: errNoNumbers.Error()}
	}
	out.Record = array.NewRecordBatch(present.ArrowSchema(), arrays, int64(rows))
	if out, err = out.Project(t); err != nil {
		return nil, err
	}
	return out.WithKeys()
}

func segmentHeader(b []byte) (rows, columns int, bodyLen uint64, err error) {
	if len(b) < headerBytes || string(b[:4]) != segmentMagic {
		return 0, 0, 0, errors.New("it has no segment header")
	}
	if b[4] != segmentVersion {
		return 0, 0, 0, fmt.Errorf("it has format version %d, this program reads %d", b[4], segmentVersion)
	}
	rows, columns = int(binary.LittleEndian.Uint32(b[12:])), int(binary.LittleEndian.Uint32(b[16:]))
	bodyLen = binary.LittleEndian.Uint64(b[24:])
	if bodyLen > maxBody {
		return 0, 0, 0, errors.New("its body is too large")
	}
	return rows, columns, bodyLen, nil
}

func segmentBody(b []byte) (rows, columns int, body []byte, err error) {
	rows, columns, bodyLen, err := segmentHeader(b)
	if err != nil {
		return 0, 0, nil, err
	}
	var zero [8]byte
	hash := xxhash.New()
	_, _ = hash.Write(b[:checksumAt])
	_, _ = hash.Write(zero[:])
	_, _ = hash.Write(b[checksumAt+8:])
	if hash.Sum64() != binary.LittleEndian.Uint64(b[checksumAt:]) {
		return 0, 0, nil, errors.New("its checksum does not match")
	}
	switch stored := b[headerBytes:]; b[5] {
	case storedPlain:
		body = append(make([]byte, 0, len(stored)), stored...)
	case storedZstd:
		if body, err = zstdDecoder().DecodeAll(stored, nil); err != nil {
			return 0, 0, nil, err
		}
	default:
		return 0, 0, nil, fmt.Errorf("unknown compression %d", b[5])
	}
	if uint64(len(body)) != bodyLen {
		return 0, 0, nil, errShort
	}
	return rows, columns, body, nil
}

// array reads one array. Its type is the table's for that column id; a column that the table no longer has gets the
// plain type of its kind.
func (c *cursor) array(rows int, t *schema.Table) (uint32, arrow.Array) {
	head := c.take(8)
	if c.err != nil {
		return 0, nil
	}
	id, kind, hasNulls := binary.LittleEndian.Uint32(head), head[4], head[5] == 1
	typ := c.arrowType(id, kind, t)
	var bitmap *memory.Buffer
	nulls := 0
	if hasNulls {
		bits := c.padded(int(bitutil.BytesForBits(int64(rows))))
		if c.err != nil {
			return 0, nil
		}
		bitmap, nulls = memory.NewBufferBytes(bits), rows-bitutil.CountSetBits(bits, 0, rows)
	}
	buffers := []*memory.Buffer{bitmap}
	if w := kindWidth[kind]; w > 0 {
		buffers = append(buffers, memory.NewBufferBytes(c.padded(rows*w)))
	} else {
		offsets := c.padded((rows + 1) * 4)
		data := c.padded(c.checkOffsets(offsets))
		buffers = append(buffers, memory.NewBufferBytes(offsets), memory.NewBufferBytes(data))
	}
	if c.err != nil {
		return 0, nil
	}
	return id, array.MakeFromData(array.NewData(typ, rows, buffers, nil, nulls, 0))
}

func (c *cursor) arrowType(id uint32, kind byte, t *schema.Table) arrow.DataType {
	typ := map[byte]arrow.DataType{
		kindInt32: arrow.PrimitiveTypes.Int32, kindInt64: arrow.PrimitiveTypes.Int64, kindUint64: arrow.PrimitiveTypes.Uint64,
		kindFloat32: arrow.PrimitiveTypes.Float32, kindFloat64: arrow.PrimitiveTypes.Float64, kindDate32: arrow.FixedWidthTypes.Date32,
		kindTimestamp: schema.WallClock, kindDecimal128: &arrow.Decimal128Type{Precision: schema.MaxDecimal128}, kindString: arrow.BinaryTypes.String, kindBinary: arrow.BinaryTypes.Binary,
	}[kind]
	if typ == nil {
		c.err = fmt.Errorf("unknown array kind %d", kind)
	}
	if id == schema.ExactFieldID && kind != kindBinary {
		c.err = errors.New("exact values are not binary")
	}
	if id == schema.NumberFieldID && kind != kindInt64 {
		c.err = errors.New("row numbers are not int64")
	}
	if at := t.ColumnByID(id); at >= 0 {
		typ = t.Columns[at].ArrowType()
		if kindOf(typ) != kind {
			c.err = fmt.Errorf("column id %d has array kind %d, the catalog says %s", id, kind, typ)
		}
	}
	return typ
}

// checkOffsets makes sure that the offsets ascend from 0, and gives the last.
func (c *cursor) checkOffsets(b []byte) int {
	last := uint32(0)
	for i := 0; i+4 <= len(b); i += 4 {
		v := binary.LittleEndian.Uint32(b[i:])
		if v < last || i == 0 && v != 0 || v > math.MaxInt32 {
			c.err = errors.New("its offsets do not ascend")
			return 0
		}
		last = v
	}
	return int(last)
}
