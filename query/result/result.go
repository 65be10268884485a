// Package result is the seam between what produces rows and what sends them to a client: columns as the protocol
// describes them, and cells in MySQL's text form.
package result

import (
	"fmt"
	"io"
	"strconv"

	"github.com/tidemarkdb/tidemark/query/field"
)

// Rows are the rows of a result, in blocks. They belong to one goroutine and must be closed; Close gives back
// everything that the rows hold, such as a pinned version, and may be called again.
type Rows interface {
	Fields() []field.Field
	// Next gives the next block, which is valid until the next call of Next or Close; io.EOF follows the last.
	Next() (Cells, error)
	Close()
}

// Cells is a block of rows.
type Cells interface {
	Len() int
	// Text appends a value as MySQL prints it, in UTF-8 where it is text. null tells NULL; nothing is appended then.
	Text(dst []byte, row, col int) (out []byte, null bool)
	// Float gives the value of a column of type FLOAT or DOUBLE that is not NULL: its text may have fewer digits.
	Float(row, col int) float64
}

// Warning is a note, warning or error that a statement leaves for SHOW WARNINGS.
type Warning struct {
	Level   string // Note, Warning or Error
	Code    uint16
	Message string
}

// Table is a small result in memory.
type Table struct {
	fields []field.Field
	rows   [][]Cell
	given  bool
}

// Cell is a value as text, or NULL.
type Cell struct {
	Text string
	Null bool
}

// Name lengths in characters.
const (
	nameLength  = 64
	textLength  = 1024
	utf8mb4Max  = 4
	bigintWidth = 21
)

// Text makes a text column that compares without regard to case.
func Text(name string) field.Field {
	return field.Field{Name: name, Type: field.VarString, Charset: field.UTF8MB3, Length: textLength * utf8mb4Max}
}

// LongText makes a column for text of any length.
func LongText(name string) field.Field {
	return field.Field{Name: name, Type: field.Blob, Charset: field.UTF8MB3, Length: 1<<32 - 1, Flags: field.BlobFlag}
}

// BlobText makes a column for text of up to so many bytes: drivers tell TEXT, MEDIUMTEXT and LONGTEXT apart by it.
func BlobText(name string, length uint32) field.Field {
	f := LongText(name)
	f.Length = length * utf8mb4Max
	return f
}

// Name makes a text column of names whose case does not matter.
func Name(name string) field.Field {
	return field.Field{Name: name, Type: field.VarString, Charset: field.UTF8MB3, Length: nameLength * utf8mb4Max}
}

// Object makes a text column of names of databases and tables, whose case matters.
func Object(name string) field.Field {
	f := Name(name)
	f.Charset = field.UTF8MB3Bin
	return f
}

// Enum makes a column of one of a few words.
func Enum(name string) field.Field {
	f := Object(name)
	f.Type, f.Flags = field.String, field.EnumFlag
	return f
}

// Int makes a BIGINT column.
func Int(name string) field.Field {
	return field.Field{Name: name, Type: field.LongLong, Charset: field.Binary, Length: bigintWidth, Flags: field.BinaryFlag}
}

// Uint makes a BIGINT UNSIGNED column.
func Uint(name string) field.Field {
	f := Int(name)
	f.Flags |= field.Unsigned
	return f
}

// Double makes a DOUBLE column.
func Double(name string) field.Field {
	return field.Field{Name: name, Type: field.Double, Charset: field.Binary, Length: 22, Flags: field.BinaryFlag, Decimals: field.AnyDecimals}
}

// DateTime makes a DATETIME column.
func DateTime(name string) field.Field {
	return field.Field{Name: name, Type: field.DateTime, Charset: field.Binary, Length: 19, Flags: field.BinaryFlag}
}

// NewTable makes an empty table.
func NewTable(fields ...field.Field) *Table { return &Table{fields: fields} }

// Add adds a row. A value is nil (NULL), a *string or *float64 (nil: NULL), a Cell, a string, an integer, or a fmt.Stringer.
func (t *Table) Add(values ...any) {
	row := make([]Cell, len(t.fields))
	for i := range row {
		row[i] = cellOf(values[i])
	}
	t.rows = append(t.rows, row)
}

func cellOf(v any) Cell {
	switch v := v.(type) {
	case nil:
		return Cell{Null: true}
	case *string:
		if v == nil {
			return Cell{Null: true}
		}
		return Cell{Text: *v}
	case *float64:
		if v == nil {
			return Cell{Null: true}
		}
		return Cell{Text: strconv.FormatFloat(*v, 'f', -1, 64)}
	case Cell:
		return v
	case string:
		return Cell{Text: v}
	case int:
		return Cell{Text: strconv.Itoa(v)}
	case int64:
		return Cell{Text: strconv.FormatInt(v, 10)}
	case uint64:
		return Cell{Text: strconv.FormatUint(v, 10)}
	}
	return Cell{Text: fmt.Sprint(v)}
}

// Rows gives the rows as they are; they must not be changed.
func (t *Table) Rows() [][]Cell { return t.rows }

// Filter keeps the rows for which keep is true.
func (t *Table) Filter(keep func(row []Cell) bool) {
	kept := t.rows[:0]
	for _, r := range t.rows {
		if keep(r) {
			kept = append(kept, r)
		}
	}
	t.rows = kept
}

// Fields gives the columns.
func (t *Table) Fields() []field.Field { return t.fields }

// Next gives all rows as one block, once.
func (t *Table) Next() (Cells, error) {
	if t.given {
		return nil, io.EOF
	}
	t.given = true
	return tableCells(t.rows), nil
}

// Close does nothing: the table holds nothing but memory.
func (t *Table) Close() {}

type tableCells [][]Cell

func (c tableCells) Len() int { return len(c) }

func (c tableCells) Text(dst []byte, row, col int) ([]byte, bool) {
	cell := &c[row][col]
	return append(dst, cell.Text...), cell.Null
}

func (c tableCells) Float(row, col int) float64 {
	f, _ := strconv.ParseFloat(c[row][col].Text, 64)
	return f
}
