package binlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
)

// benchTable has 13 columns of the types that an order line has.
func benchTable() *schema.Table {
	t := &schema.Table{Database: "t", Name: "a", Version: 1, Key: []int{0, 3}}
	for i, typ := range []string{"int", "int", "int", "int", "decimal(15,2)", "decimal(15,2)", "decimal(15,2)", "decimal(15,2)", "char(1)", "char(1)", "date", "datetime", "varchar(44)"} {
		c, err := schema.ParseColumnType(typ)
		if err != nil {
			panic(err)
		}
		c.ID, c.Name = uint32(i+1), fmt.Sprintf("c%d", i)
		if c.Type.IsText() {
			c.Charset = "utf8mb4"
		}
		t.Columns = append(t.Columns, c)
	}
	return t
}

func benchRow(dst []byte, n int) []byte {
	dst = append(dst, 0, 0)
	for _, v := range []int{n / 4, n * 7 % 200000, n % 10000, n % 4} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	for _, v := range []int{n % 50, n % 100000, n % 11, n % 9} {
		dst = append(dst, 0x80, 0, 0) // 13 digits: 4 in 2 bytes, 9 in 4, 2 in 1
		dst = append(dst[:len(dst)-1], byte(v>>24), byte(v>>16), byte(v>>8), byte(v), byte(n%100))
	}
	dst = append(dst, 1, 'N', 1, 'O')
	day := 2020<<9 | (n%12+1)<<5 | n%28 + 1
	dst = append(dst, byte(day), byte(day>>8), byte(day>>16))
	when := uint64(1)<<39 | uint64(2020*13+n%12+1)<<22 | uint64(n%28+1)<<17 | uint64(n%24)<<12
	dst = append(dst, byte(when>>32), byte(when>>24), byte(when>>16), byte(when>>8), byte(when))
	text := "carefully final deposits sleep"
	return append(append(dst, byte(len(text))), text...)
}

// benchEvent is a row event as the source cuts them: about 8 KiB.
func benchEvent(m *TableMap, action Action) (*RowsEvent, int) {
	body := []byte{13, 0xff, 0x1f}
	images := 1
	if action == Update {
		body, images = append(body, 0xff, 0x1f), 2
	}
	rows := 0
	for ; len(body) < 8192; rows++ {
		for range images {
			body = benchRow(body, rows)
		}
	}
	return &RowsEvent{Table: m, Action: action, body: body}, rows
}

func BenchmarkDecode(b *testing.B) {
	table := benchTable()
	m := mapOf(table)
	d, err := NewDecoder(m, table)
	if err != nil {
		b.Fatal(err)
	}
	for _, action := range []Action{Insert, Update, Delete} {
		b.Run(action.String(), func(b *testing.B) {
			e, perEvent := benchEvent(m, action)
			rows, keys := column.NewBuilder(memory.DefaultAllocator, table), column.NewKeyBuilder(table)
			b.SetBytes(int64(len(e.body)))
			total := 0
			for b.Loop() {
				if err := d.Decode(e, keys, rows, nil); err != nil {
					b.Fatal(err)
				}
				if total += perEvent; rows.Rows() > 65536 || keys.Keys().Len() > 65536 {
					if _, err := rows.Finish(); err != nil {
						b.Fatal(err)
					}
					if _, err := keys.Finish(); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(total)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// BenchmarkRead reads transactions out of a log, small ones and one of many events.
func BenchmarkRead(b *testing.B) {
	table := benchTable()
	e, _ := benchEvent(mapOf(table), Insert)
	event := append([]byte{9, 0, 0, 0, 0, 0, 1, 0, 2, 0}, e.body...)
	for _, shape := range []struct {
		name         string
		body         []byte
		transactions int
		events       int
	}{{"oltp", rowsBody(9, "x"), 20000, 1}, {"bulk", event, 1, 4000}} {
		b.Run(shape.name, func(b *testing.B) {
			w := newLog(true)
			for i := range shape.transactions {
				w.event(evGTID, gtidBody(int64(i+1))).event(evQuery, queryBody("BEGIN"))
				for range shape.events {
					w.event(evTableMap, tableMapBody(9)).event(evWriteRows, shape.body)
				}
				w.event(evXID, xidBody())
			}
			b.SetBytes(int64(w.buf.Len()))
			count := 0
			for b.Loop() {
				r, err := NewLog(bytes.NewReader(w.buf.Bytes()), LogConfig{SpillBytes: 1 << 30})
				if err != nil {
					b.Fatal(err)
				}
				for {
					tx, err := r.Next()
					if err == io.EOF {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					count++
					if err := tx.Release(); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "tx/s")
		})
	}
}
