// Package part reads and writes parts, the immutable Parquet files that hold a table's rows, and segments, the rows of
// one commit that are too few for a part.
//
// A part's columns carry their column id as Parquet field id and are all OPTIONAL. Integers, decimals of up to 18
// digits, dates and times are DELTA_BINARY_PACKED, floating-point numbers BYTE_STREAM_SPLIT, text is dictionary encoded
// or DELTA_LENGTH_BYTE_ARRAY. BIGINT UNSIGNED and BIT(64) are int64 in parts whose values all fit, decimal(20,0) in
// others. The numbers that tell equal rows of a table without a key apart stand in a hidden column. See
// docs/format/part.md.
package part

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemarkdb/tidemark/schema"
)

// Info describes a part. It stands in the catalog.
type Info struct {
	Rows int64
	// Bytes is the size of the file, Checksum the xxHash64 of all of it.
	Bytes    int64
	Checksum uint64
	// SchemaVersion is the version of the table definition that the rows followed when written; Columns are the ids of
	// the columns present.
	SchemaVersion uint32
	Columns       []uint32
	// Wide are the ids of the columns stored as decimal(20,0).
	Wide []uint32 `json:",omitempty"`
	// Exact tells that the file has the hidden column; ExactColumns are the ids of the columns with values in it.
	Exact        bool     `json:",omitempty"`
	ExactColumns []uint32 `json:",omitempty"`
	MinKey       []byte   `json:",omitempty"`
	MaxKey       []byte   `json:",omitempty"`
}

// WriteOptions says how a part is written.
type WriteOptions struct {
	// FS is the file system; nil is the operating system's.
	FS vfs.FS
	// Wide are the ids of the BIGINT UNSIGNED and BIT(64) columns to store as decimal(20,0), Exact whether the file has
	// the hidden column. NewWriter needs both up front; Write finds both by looking at the rows.
	Wide  []uint32
	Exact bool
}

// DamageError tells a part or segment whose bytes are not what was written.
type DamageError struct {
	Path   string
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged: %s; restore the file from a backup, or drop the database and create it again", e.Path, e.Reason)
}

func fileSystem(fs vfs.FS) vfs.FS {
	if fs == nil {
		return vfs.Default
	}
	return fs
}

var wideType = &arrow.Decimal128Type{Precision: 20, Scale: 0}

// fileSchema gives the Arrow schema of a part's file. Hidden columns get names that no other column has.
func fileSchema(t *schema.Table, wide map[uint32]bool, exact bool) *arrow.Schema {
	fields := make([]arrow.Field, 0, len(t.Columns)+1)
	for i := range t.Columns {
		f := t.Columns[i].ArrowField()
		if t.Columns[i].Wide() {
			f.Type = arrow.PrimitiveTypes.Int64
			if wide[t.Columns[i].ID] {
				f.Type = wideType
			}
		}
		fields = append(fields, f)
	}
	if exact {
		fields = append(fields, hidden(t, schema.ExactField()))
	}
	if t.Multiset() {
		fields = append(fields, hidden(t, schema.NumberField()))
	}
	return arrow.NewSchema(fields, nil)
}

func hidden(t *schema.Table, f arrow.Field) arrow.Field {
	name := f.Name
	for n := 1; t.Column(f.Name) >= 0; n++ {
		f.Name = name + strconv.Itoa(n)
	}
	return f
}

// errNoNumbers is for rows of a table without a key that the store has not numbered: they could not be told apart.
var errNoNumbers = errors.New("rows of a table without a key have no numbers")

func idSet(ids []uint32) map[uint32]bool {
	set := make(map[uint32]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}
