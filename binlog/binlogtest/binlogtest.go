// Package binlogtest makes binlog events and transactions out of table definitions and plain Go values, for tests that
// need no server. It encodes as MySQL does, so that what it makes goes through the same decoder as the real stream.
package binlogtest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/schema"
)

// Row is the values of a row, one for each column. nil is NULL; integers, YEAR, BIT, the index of an ENUM and the mask
// of a SET are int or uint64; FLOAT and DOUBLE are float64; everything else is the string that MySQL prints (TIMESTAMP
// in UTC, text in the column's character set). JSON takes nil for NULL, an int, or a string for a JSON string.
//
// Absent makes the images of an event partial: the column is in no row of that kind, old or new, as the first ones say.
type Row []any

type absent struct{}

// Absent is what a column has that an image leaves out.
var Absent = absent{}

// Table is the table map that a source with minimal metadata logs for t.
func Table(t *schema.Table) *binlog.TableMap {
	b := []byte{1, 0, 0, 0, 0, 0, 1, 0}
	b = append(append(append(b, byte(len(t.Database))), t.Database...), 0)
	b = append(append(append(b, byte(len(t.Name))), t.Name...), 0)
	b = append(b, byte(len(t.Columns)))
	var meta []byte
	nulls := make([]byte, (len(t.Columns)+7)/8)
	for i := range t.Columns {
		typ, m := describe(&t.Columns[i])
		b, meta = append(b, typ), append(meta, m...)
		if t.Columns[i].Nullable {
			nulls[i/8] |= 1 << (i % 8)
		}
	}
	if len(t.Columns) > 250 || len(meta) > 250 {
		panic("binlogtest: the table has too many columns")
	}
	b = append(append(b, byte(len(meta))), meta...)
	m, err := binlog.ParseTableMap(append(b, nulls...))
	if err != nil {
		panic(err)
	}
	return m
}

// Insert is the event of rows inserted.
func Insert(m *binlog.TableMap, t *schema.Table, rows ...Row) *binlog.RowsEvent {
	return event(m, t, binlog.Insert, rows)
}

// Delete is the event of rows deleted.
func Delete(m *binlog.TableMap, t *schema.Table, rows ...Row) *binlog.RowsEvent {
	return event(m, t, binlog.Delete, rows)
}

// Update is the event of rows changed: old, new, old, new.
func Update(m *binlog.TableMap, t *schema.Table, pairs ...Row) *binlog.RowsEvent {
	return event(m, t, binlog.Update, pairs)
}

func event(m *binlog.TableMap, t *schema.Table, action binlog.Action, images []Row) *binlog.RowsEvent {
	body := []byte{byte(len(t.Columns))}
	kinds := 1
	if action == binlog.Update {
		kinds = 2
	}
	for kind := range kinds {
		if len(images) > kind {
			body = append(body, bits(images[kind], func(v any) bool { return v != Absent })...)
		} else {
			body = append(body, slices.Repeat([]byte{0xff}, (len(t.Columns)+7)/8)...)
		}
	}
	for n, row := range images {
		var present Row
		for i, v := range row {
			if (v == Absent) != (images[n%kinds][i] == Absent) {
				panic("binlogtest: the images of an event lack different columns")
			}
			if v != Absent {
				present = append(present, v)
			}
		}
		body = append(body, bits(present, func(v any) bool { return v == nil })...)
		for i, v := range row {
			if v != nil && v != Absent {
				body = appendValue(body, &t.Columns[i], v)
			}
		}
	}
	return binlog.NewRowsEvent(m, action, body)
}

func bits(row Row, set func(v any) bool) []byte {
	out := make([]byte, (len(row)+7)/8)
	for i, v := range row {
		if set(v) {
			out[i/8] |= 1 << (i % 8)
		}
	}
	return out
}

// Statement is a statement run in a database at a time, with utf8mb4 and an empty sql_mode.
func Statement(database, sql string, at time.Time) *binlog.Statement {
	micros := uint32(at.Nanosecond() / 1000)
	status := []byte{4, 255, 0, 255, 0, 255, 0, 13, byte(micros), byte(micros >> 8), byte(micros >> 16)}
	b := make([]byte, 13)
	b[8] = byte(len(database))
	binary.LittleEndian.PutUint16(b[11:], uint16(len(status)))
	b = append(append(append(append(b, status...), database...), 0), sql...)
	s, err := binlog.ParseStatement(b, uint32(at.Unix()))
	if err != nil {
		panic(err)
	}
	return s
}

// Transaction is a transaction of the given events that starts and ends in the same file.
func Transaction(kind binlog.Kind, g gtid.GTID, start, end gtid.Position, events ...binlog.Event) *binlog.Transaction {
	return binlog.NewTransaction(kind, g, start, end, events...)
}

// describe gives a column's type and metadata as a table map has them.
func describe(c *schema.Column) (typ byte, meta []byte) {
	length := c.Length * schema.CharBytes(c.Charset)
	switch c.Type {
	case schema.TinyInt:
		return 1, nil
	case schema.SmallInt:
		return 2, nil
	case schema.MediumInt:
		return 9, nil
	case schema.Int:
		return 3, nil
	case schema.BigInt:
		return 8, nil
	case schema.Decimal:
		return 246, []byte{byte(c.Precision), byte(c.Scale)}
	case schema.Float:
		return 4, []byte{4}
	case schema.Double:
		return 5, []byte{8}
	case schema.Bit:
		return 16, []byte{byte(c.Length % 8), byte(c.Length / 8)}
	case schema.Date:
		return 10, nil
	case schema.DateTime:
		return 18, []byte{byte(c.FSP)}
	case schema.Timestamp:
		return 17, []byte{byte(c.FSP)}
	case schema.Time:
		return 19, []byte{byte(c.FSP)}
	case schema.Year:
		return 13, nil
	case schema.Char, schema.Binary:
		return 254, []byte{byte(254 ^ (length >> 8 & 3 << 4)), byte(length)}
	case schema.VarChar, schema.VarBinary:
		return 15, []byte{byte(length), byte(length >> 8)}
	case schema.Enum:
		return 254, []byte{247, byte(enumBytes(c))}
	case schema.Set:
		return 254, []byte{248, byte(setBytes(c))}
	case schema.JSON:
		return 245, []byte{4}
	}
	return 252, []byte{byte(blobBytes(c.Type))}
}

func enumBytes(c *schema.Column) int {
	if len(c.Elements) < 256 {
		return 1
	}
	return 2
}

func setBytes(c *schema.Column) int {
	if n := (len(c.Elements) + 7) / 8; n <= 4 {
		return n
	}
	return 8
}

func blobBytes(t schema.Type) int {
	switch t {
	case schema.TinyText, schema.TinyBlob:
		return 1
	case schema.Text, schema.Blob:
		return 2
	case schema.MediumText, schema.MediumBlob:
		return 3
	case schema.LongText, schema.LongBlob:
		return 4
	}
	panic(fmt.Sprintf("binlogtest: no encoding for type %s", t))
}
