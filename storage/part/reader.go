package part

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
)

// A reader gives batchRows rows at a time, fewer when they are large: about batchBytes.
const (
	batchRows  = 32 << 10
	batchBytes = 16 << 20
)

// Reader reads one part. Several goroutines may each use their own Batches or ReadRows of it.
type Reader struct {
	path string
	file vfs.File
	pq   *file.Reader
	// columns maps field ids to column numbers of the file.
	columns map[uint32]int
}

// Open opens a part. A file that is no part gives a DamageError.
func Open(fs vfs.FS, path string) (*Reader, error) {
	f, err := fileSystem(fs).Open(path)
	if err != nil {
		return nil, fmt.Errorf("can't open part %s: %w", path, err)
	}
	stat, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("can't read part %s: %w", path, err), f.Close())
	}
	r := &Reader{path: path, file: f, columns: map[uint32]int{}}
	if err := r.open(stat.Size()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

func (r *Reader) open(size int64) (err error) {
	defer r.guard(&err)
	r.pq, err = file.NewParquetReader(io.NewSectionReader(r.file, 0, size))
	if err != nil {
		return r.damaged(err)
	}
	root := r.pq.MetaData().Schema.Root()
	for i := range root.NumFields() {
		r.columns[uint32(root.Field(i).FieldID())] = i
	}
	return nil
}

// guard turns a panic of the Parquet library over damaged bytes into an error.
func (r *Reader) guard(err *error) {
	if p := recover(); p != nil {
		*err = r.damaged(fmt.Errorf("%v", p))
	}
}

func (r *Reader) damaged(err error) error { return &DamageError{Path: r.path, Reason: err.Error()} }

// Rows is the number of rows, dead ones included.
func (r *Reader) Rows() int64 { return r.pq.NumRows() }

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }

// Batches reads all rows in file order, mapped to a version of the table: columns by id, those the part lacks with
// their initial value, keys computed anew.
func (r *Reader) Batches(ctx context.Context, t *schema.Table) (*Batches, error) {
	groups := make([]int, r.pq.NumRowGroups())
	for i := range groups {
		groups[i] = i
	}
	return r.batches(ctx, t, groups)
}

// Batches is a pass over rows of a part. It is not safe for concurrent use.
type Batches struct {
	reader  *Reader
	table   *schema.Table
	records pqarrow.RecordReader // nil for a part without rows
	fields  []int                // for each column of the table its number in the records, -1 when absent
	exact   int                  // the hidden columns' numbers in the records, -1 when absent
	numbers int
}

func (r *Reader) batches(ctx context.Context, t *schema.Table, groups []int) (_ *Batches, err error) {
	defer r.guard(&err)
	b := &Batches{reader: r, table: t, exact: -1, numbers: -1}
	wanted := b.choose()
	if r.Rows() == 0 {
		return b, nil
	}
	if len(wanted) == 0 {
		wanted = append(wanted, 0)
	}
	pq, err := pqarrow.NewFileReader(r.pq, pqarrow.ArrowReadProperties{BatchSize: r.batchRows()}, memory.DefaultAllocator)
	if err != nil {
		return nil, r.damaged(err)
	}
	b.records, err = pq.GetRecordReader(ctx, wanted, groups)
	if err != nil {
		return nil, r.failed(ctx, err)
	}
	return b, nil
}

// batchRows gives the number of rows to read at a time, from the row group with the largest rows. A group whose size in
// the file is small by its dictionary was ended early when its rows are large in memory, so its number of rows counts too.
func (r *Reader) batchRows() int64 {
	rows := int64(batchRows)
	for i := range r.pq.NumRowGroups() {
		g := r.pq.MetaData().RowGroup(i)
		if g.TotalByteSize() > 0 {
			rows = min(rows, batchBytes*max(g.NumRows(), 1)/g.TotalByteSize())
		}
		if i < r.pq.NumRowGroups()-1 {
			rows = min(rows, g.NumRows())
		}
	}
	return max(rows, 1)
}

// choose lists the file's columns to read, in file order, and fills fields, exact and numbers.
func (b *Batches) choose() []int {
	var ids []uint32
	for i := range b.table.Columns {
		ids = append(ids, b.table.Columns[i].ID)
	}
	ids = append(ids, schema.ExactFieldID, schema.NumberFieldID)
	var wanted []int
	for _, id := range ids {
		if at, ok := b.reader.columns[id]; ok {
			wanted = append(wanted, at)
		}
	}
	slices.Sort(wanted)
	place := func(id uint32) int {
		at, ok := b.reader.columns[id]
		if !ok {
			return -1
		}
		return slices.Index(wanted, at)
	}
	b.fields = make([]int, len(b.table.Columns))
	for i := range b.table.Columns {
		b.fields[i] = place(b.table.Columns[i].ID)
	}
	b.exact, b.numbers = place(schema.ExactFieldID), place(schema.NumberFieldID)
	return wanted
}

// failed tells cancellation from damage.
func (r *Reader) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.damaged(err)
}

// Next gives the next rows, io.EOF at the end.
func (b *Batches) Next() (*column.Batch, error) {
	batch, err := b.next()
	if err != nil {
		return nil, err
	}
	return b.finish(batch)
}

// next gives the next rows as they stand in the file.
func (b *Batches) next() (_ *column.Batch, err error) {
	if b.records == nil {
		return nil, io.EOF
	}
	defer b.reader.guard(&err)
	rec, err := b.records.Read()
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, b.reader.damaged(err)
	}
	return b.convert(rec)
}

// finish maps rows to the table, and computes their keys.
func (b *Batches) finish(batch *column.Batch) (*column.Batch, error) {
	batch, err := batch.Project(b.table)
	if err != nil {
		return nil, err
	}
	return batch.WithKeys()
}

// Close ends the pass.
func (b *Batches) Close() {
	if b.records != nil {
		b.records.Release()
	}
}

// convert gives a record of the file as rows of those of the table's columns that the file has.
func (b *Batches) convert(rec arrow.RecordBatch) (*column.Batch, error) {
	present := b.table.Clone()
	present.Columns, present.Key = nil, nil
	var arrays []arrow.Array
	for i, at := range b.fields {
		if at < 0 {
			continue
		}
		c := &b.table.Columns[i]
		a, err := b.reader.widen(c, rec.Column(at))
		if err != nil {
			return nil, err
		}
		present.Columns = append(present.Columns, *c)
		arrays = append(arrays, a)
	}
	out := &column.Batch{Table: present, Record: array.NewRecordBatch(present.ArrowSchema(), arrays, rec.NumRows())}
	if b.exact >= 0 {
		exact, ok := rec.Column(b.exact).(*array.Binary)
		if !ok {
			return nil, b.reader.damaged(errors.New("the hidden column is not binary"))
		}
		if exact.NullN() < exact.Len() {
			out.Exact = exact
		}
	}
	if b.table.Multiset() {
		var err error
		if out.Numbers, err = b.numbersOf(rec); err != nil {
			return nil, err
		}
	}
	// A version that no table has makes Project do its work even where the part has all columns.
	present.Version = ^b.table.Version
	return out, nil
}

func (b *Batches) numbersOf(rec arrow.RecordBatch) (*array.Int64, error) {
	if b.numbers < 0 {
		return nil, b.reader.damaged(errNoNumbers)
	}
	numbers, ok := rec.Column(b.numbers).(*array.Int64)
	if !ok || numbers.NullN() > 0 {
		return nil, b.reader.damaged(errors.New("the hidden column of row numbers has something else"))
	}
	return numbers, nil
}

// widen turns a column of the file into its in-memory form, and refuses a column of another type.
func (r *Reader) widen(c *schema.Column, a arrow.Array) (arrow.Array, error) {
	want := c.ArrowType()
	if !c.Wide() {
		if !arrow.TypeEqual(a.DataType(), want) {
			return nil, r.damaged(fmt.Errorf("column %s (id %d) has type %s, the catalog says %s", c.Name, c.ID, a.DataType(), want))
		}
		return a, nil
	}
	switch a := a.(type) {
	case *array.Int64:
		d := a.Data()
		return array.NewUint64Data(array.NewData(want, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset())), nil
	case *array.Decimal128:
		b := array.NewUint64Builder(memory.DefaultAllocator)
		b.Reserve(a.Len())
		for i := range a.Len() {
			if a.IsNull(i) {
				b.AppendNull()
			} else {
				b.UnsafeAppend(a.Value(i).LowBits())
			}
		}
		return b.NewArray(), nil
	}
	return nil, r.damaged(fmt.Errorf("column %s (id %d) has type %s", c.Name, c.ID, a.DataType()))
}

// Read calls fn for all rows in file order, as Batches gives them.
func (r *Reader) Read(ctx context.Context, t *schema.Table, fn func(*column.Batch) error) error {
	b, err := r.Batches(ctx, t)
	if err != nil {
		return err
	}
	defer b.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch, err := b.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = fn(batch)
		}
		if err != nil {
			return err
		}
	}
}

// ReadRows gives the rows with the given numbers, which must ascend. Row groups without wanted rows are not read.
func (r *Reader) ReadRows(ctx context.Context, t *schema.Table, rows []uint32) (*column.Batch, error) {
	var parts []*column.Batch
	err := r.EachRows(ctx, t, rows, func(b *column.Batch) error {
		parts = append(parts, b)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return column.NewBuilder(memory.DefaultAllocator, t).Finish()
	}
	return column.Concat(parts)
}

// EachRows calls fn for the rows with the given numbers, which must ascend, in pieces of bounded memory.
func (r *Reader) EachRows(ctx context.Context, t *schema.Table, rows []uint32, fn func(*column.Batch) error) error {
	first := int64(0)
	for g := range r.pq.NumRowGroups() {
		n := r.pq.MetaData().RowGroup(g).NumRows()
		end, _ := slices.BinarySearch(rows, uint32(first+n))
		if end > 0 {
			if err := r.readGroup(ctx, t, g, first, rows[:end], fn); err != nil {
				return err
			}
		}
		rows, first = rows[end:], first+n
	}
	if len(rows) > 0 {
		return r.damaged(fmt.Errorf("it has %d rows, row %d is wanted", first, rows[0]))
	}
	return nil
}

func (r *Reader) readGroup(ctx context.Context, t *schema.Table, group int, first int64, rows []uint32, fn func(*column.Batch) error) error {
	b, err := r.batches(ctx, t, []int{group})
	if err != nil {
		return err
	}
	defer b.Close()
	for len(rows) > 0 {
		batch, err := b.next()
		if err != nil {
			return err
		}
		end, _ := slices.BinarySearch(rows, uint32(first+int64(batch.Rows())))
		if end > 0 {
			take := make([]int, end)
			for i, row := range rows[:end] {
				take[i] = int(int64(row) - first)
			}
			some, err := b.finish(batch.Take(take))
			if err == nil {
				err = fn(some)
			}
			if err != nil {
				return err
			}
		}
		rows, first = rows[end:], first+int64(batch.Rows())
	}
	return nil
}

// Verify compares a part's file with its description: size, checksum, row count.
func Verify(fs vfs.FS, path string, info Info) error {
	r, err := Open(fs, path)
	if err != nil {
		return err
	}
	hash := xxhash.New()
	n, err := io.Copy(hash, io.NewSectionReader(r.file, 0, 1<<62))
	err = errors.Join(err, r.Close())
	switch {
	case err != nil:
		return fmt.Errorf("can't read part %s: %w", path, err)
	case n != info.Bytes:
		return r.damaged(fmt.Errorf("it has %d bytes, the catalog says %d", n, info.Bytes))
	case hash.Sum64() != info.Checksum:
		return r.damaged(fmt.Errorf("its checksum is %016x, the catalog says %016x", hash.Sum64(), info.Checksum))
	case r.Rows() != info.Rows:
		return r.damaged(fmt.Errorf("it has %d rows, the catalog says %d", r.Rows(), info.Rows))
	}
	return nil
}
