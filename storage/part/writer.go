package part

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
)

const (
	// rowGroupRows is the size of a row group: what a query engine's thread takes at a time.
	rowGroupRows = 122_880
	// rowGroupBytes is the size in memory at which a row group ends earlier: readers hold a row group's pages.
	rowGroupBytes = 32 << 20
	// dictionaryBytes bounds a dictionary: text with more distinct values is cheaper without.
	dictionaryBytes = 256 << 10
	// diskWriteCategory names parts in the file system's write statistics.
	diskWriteCategory vfs.DiskWriteCategory = "tidemark-part"
)

// hashingFile counts and hashes what is written.
type hashingFile struct {
	vfs.File
	hash *xxhash.Digest
	n    int64
	err  error
}

func (f *hashingFile) Write(b []byte) (int, error) {
	_, _ = f.hash.Write(b)
	n, err := f.File.Write(b)
	f.n += int64(n)
	if err != nil && f.err == nil {
		f.err = err
	}
	return n, err
}

// Close leaves the file open: the Parquet writer closes its sink, the Writer syncs after that.
func (f *hashingFile) Close() error { return nil }

// Writer writes one part. It is not safe for concurrent use.
type Writer struct {
	fs     vfs.FS
	path   string
	table  *schema.Table
	schema *arrow.Schema
	file   *hashingFile
	pq     *pqarrow.FileWriter
	wide   map[uint32]bool
	exact  bool
	seen   map[uint32]bool // columns with exact values
	info   Info
	group  uint64 // bytes in memory of the rows of the present row group
}

// NewWriter creates the file and its writer. The caller ends it with Finish or Abort.
func NewWriter(path string, t *schema.Table, opt WriteOptions) (*Writer, error) {
	w := &Writer{fs: fileSystem(opt.FS), path: path, table: t, wide: idSet(opt.Wide), exact: opt.Exact, seen: map[uint32]bool{}}
	w.schema = fileSchema(t, w.wide, opt.Exact)
	f, err := w.fs.Create(path, diskWriteCategory)
	if err != nil {
		return nil, fmt.Errorf("can't create part %s: %w", path, err)
	}
	w.file = &hashingFile{File: f, hash: xxhash.New()}
	w.pq, err = pqarrow.NewFileWriter(w.schema, w.file, writerProperties(w.schema), pqarrow.NewArrowWriterProperties())
	if err != nil {
		w.Abort()
		return nil, fmt.Errorf("can't write part %s: %w", path, err)
	}
	w.info = Info{SchemaVersion: t.Version, Wide: slices.Clone(opt.Wide), Exact: opt.Exact}
	for i := range t.Columns {
		w.info.Columns = append(w.info.Columns, t.Columns[i].ID)
	}
	return w, nil
}

func writerProperties(s *arrow.Schema) *parquet.WriterProperties {
	opts := []parquet.WriterProperty{
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithDataPageVersion(parquet.DataPageV2),
		parquet.WithCompression(compress.Codecs.Lz4Raw),
		parquet.WithMaxRowGroupLength(rowGroupRows),
		parquet.WithDictionaryPageSizeLimit(dictionaryBytes),
		parquet.WithStoreDecimalAsInteger(true),
		parquet.WithCreatedBy("tidemark"),
	}
	for _, f := range s.Fields() {
		opts = append(opts, columnProperties(f)...)
	}
	return parquet.NewWriterProperties(opts...)
}

func columnProperties(f arrow.Field) []parquet.WriterProperty {
	encoded := func(e parquet.Encoding) []parquet.WriterProperty {
		return []parquet.WriterProperty{parquet.WithDictionaryFor(f.Name, false), parquet.WithEncodingFor(f.Name, e)}
	}
	switch typ := f.Type.(type) {
	case *arrow.Int32Type, *arrow.Int64Type, *arrow.Date32Type, *arrow.TimestampType:
		return encoded(parquet.Encodings.DeltaBinaryPacked)
	case *arrow.Float32Type, *arrow.Float64Type:
		return encoded(parquet.Encodings.ByteStreamSplit)
	case *arrow.Decimal128Type:
		if typ.Precision <= 18 {
			return encoded(parquet.Encodings.DeltaBinaryPacked)
		}
		return nil
	default:
		return []parquet.WriterProperty{
			parquet.WithEncodingFor(f.Name, parquet.Encodings.DeltaLengthByteArray),
			parquet.WithDictionaryFor(f.Name, true),
		}
	}
}

// Add appends rows. They must follow the writer's table definition and stand in the order of their keys.
func (w *Writer) Add(b *column.Batch) error {
	if b.Table.Version != w.table.Version {
		return fmt.Errorf("part %s: rows of version %d in a part of version %d", w.path, b.Table.Version, w.table.Version)
	}
	if b.Rows() == 0 {
		return nil
	}
	rec, err := w.record(b)
	if err != nil {
		return fmt.Errorf("part %s: %w", w.path, err)
	}
	if err := w.pq.WriteBuffered(rec); err != nil {
		return w.writeError(err)
	}
	w.describe(b)
	return w.endGroup(rec)
}

// endGroup starts a new row group when the rows of the present one are many bytes. The Parquet writer starts one by itself
// when they are many.
func (w *Writer) endGroup(rec arrow.RecordBatch) error {
	for _, a := range rec.Columns() {
		w.group += a.Data().SizeInBytes()
	}
	if rows, err := w.pq.RowGroupNumRows(); err != nil || int64(rows) < rec.NumRows() {
		w.group = 0
		return err
	}
	if w.group < rowGroupBytes {
		return nil
	}
	w.group = 0
	if err := w.pq.NewBufferedRowGroupChecked(); err != nil {
		return w.writeError(err)
	}
	return nil
}

func (w *Writer) describe(b *column.Batch) {
	w.info.Rows += int64(b.Rows())
	if n := b.Keys.Len(); n > 0 {
		if w.info.MinKey == nil {
			w.info.MinKey = bytes.Clone(b.Keys.At(0))
		}
		w.info.MaxKey = bytes.Clone(b.Keys.At(n - 1))
	}
}

func (w *Writer) record(b *column.Batch) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, 0, w.schema.NumFields())
	for i := range w.table.Columns {
		a := b.Record.Column(i)
		if u, ok := a.(*array.Uint64); ok {
			var err error
			if a, err = narrow(u, w.wide[w.table.Columns[i].ID]); err != nil {
				return nil, fmt.Errorf("column %s: %w", w.table.Columns[i].Name, err)
			}
		}
		columns = append(columns, a)
	}
	ids, err := b.ExactColumns()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		w.seen[id] = true
	}
	switch {
	case w.exact && b.Exact != nil:
		columns = append(columns, b.Exact)
	case w.exact:
		columns = append(columns, array.MakeArrayOfNull(memory.DefaultAllocator, arrow.BinaryTypes.Binary, b.Rows()))
	case len(ids) > 0:
		return nil, errors.New("rows with exact values in a part without the hidden column")
	}
	if w.table.Multiset() {
		if b.Numbers == nil {
			return nil, errNoNumbers
		}
		columns = append(columns, b.Numbers)
	}
	return array.NewRecordBatch(w.schema, columns, int64(b.Rows())), nil
}

// narrow turns uint64 values into the form of the file.
func narrow(a *array.Uint64, wide bool) (arrow.Array, error) {
	if wide {
		b := array.NewDecimal128Builder(memory.DefaultAllocator, wideType)
		b.Reserve(a.Len())
		for i := range a.Len() {
			if a.IsNull(i) {
				b.AppendNull()
			} else {
				b.UnsafeAppend(decimal128.FromU64(a.Value(i)))
			}
		}
		return b.NewArray(), nil
	}
	if !fits(a) {
		return nil, errors.New("a value beyond 63 bits in a part that stores 63")
	}
	d := a.Data()
	return array.NewInt64Data(array.NewData(arrow.PrimitiveTypes.Int64, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset())), nil
}

func fits(a *array.Uint64) bool {
	for i, v := range a.Uint64Values() {
		if v > math.MaxInt64 && a.IsValid(i) {
			return false
		}
	}
	return true
}

// Finish ends the file, makes it durable, and describes it. The directory is the caller's to sync.
func (w *Writer) Finish() (Info, error) {
	if err := w.pq.Close(); err != nil {
		err = w.writeError(err)
		w.Abort()
		return Info{}, err
	}
	if err := errors.Join(w.file.err, w.file.Sync(), w.file.File.Close()); err != nil {
		_ = w.fs.Remove(w.path)
		return Info{}, fmt.Errorf("can't write part %s: %w", w.path, err)
	}
	w.info.Bytes, w.info.Checksum = w.file.n, w.file.hash.Sum64()
	for id := range w.seen {
		w.info.ExactColumns = append(w.info.ExactColumns, id)
	}
	slices.Sort(w.info.ExactColumns)
	return w.info, nil
}

// Abort gives the part up and removes the file.
func (w *Writer) Abort() {
	_ = w.file.File.Close()
	_ = w.fs.Remove(w.path)
}

// writeError prefers the file system's error to what the Parquet writer made of it.
func (w *Writer) writeError(err error) error {
	if w.file.err != nil {
		err = w.file.err
	}
	return fmt.Errorf("can't write part %s: %w", w.path, err)
}

// Write writes one part of the batches, which must stand in key order, and makes it durable.
func Write(ctx context.Context, path string, t *schema.Table, batches []*column.Batch, opt WriteOptions) (Info, error) {
	opt.Wide, opt.Exact = needs(t, batches)
	w, err := NewWriter(path, t, opt)
	if err != nil {
		return Info{}, err
	}
	for _, b := range batches {
		err := ctx.Err()
		if err == nil {
			err = w.Add(b)
		}
		if err != nil {
			w.Abort()
			return Info{}, err
		}
	}
	return w.Finish()
}

// needs tells which columns must be stored wide, and whether any row has exact values.
func needs(t *schema.Table, batches []*column.Batch) (wide []uint32, exact bool) {
	for i := range t.Columns {
		for _, b := range batches {
			if u, ok := b.Record.Column(i).(*array.Uint64); ok && !fits(u) {
				wide = append(wide, t.Columns[i].ID)
				break
			}
		}
	}
	return wide, slices.ContainsFunc(batches, func(b *column.Batch) bool { return b.Exact != nil })
}
