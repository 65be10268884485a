package binlog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/zstd"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/schema"
)

// logWriter writes a binlog file, event by event.
type logWriter struct {
	buf      bytes.Buffer
	checksum bool
}

func newLog(checksum bool) *logWriter {
	w := &logWriter{checksum: checksum}
	w.buf.Write(fileMagic[:])
	return w.format(1)
}

// format writes a format description; created is not 0 in the first file after a start of the server.
func (w *logWriter) format(created uint32) *logWriter {
	body := binary.LittleEndian.AppendUint16(nil, 4)
	body = append(body, make([]byte, 50)...)
	body = append(binary.LittleEndian.AppendUint32(body, created), headerSize)
	post := make([]byte, evGTIDTagged)
	post[evQuery-1], post[evTableMap-1], post[evWriteRows-1] = 13, 8, 10
	body = append(body, post...)
	if w.checksum {
		return w.event(evFormatDescription, append(body, checksumCRC32))
	}
	return w.event(evFormatDescription, append(body, 0, 0, 0, 0, 0))
}

func rawEvent(typ eventType, body []byte, end uint32) []byte {
	raw := binary.LittleEndian.AppendUint32(nil, 1700000000)
	raw = append(raw, byte(typ))
	raw = binary.LittleEndian.AppendUint32(raw, 1)
	raw = binary.LittleEndian.AppendUint32(raw, uint32(headerSize+len(body)))
	raw = binary.LittleEndian.AppendUint32(raw, end)
	raw = binary.LittleEndian.AppendUint16(raw, 0)
	return append(raw, body...)
}

func (w *logWriter) event(typ eventType, body []byte) *logWriter {
	size := headerSize + len(body)
	if w.checksum {
		size += checksumSize
	}
	raw := rawEvent(typ, body, uint32(w.buf.Len()+size))
	if w.checksum {
		binary.LittleEndian.PutUint32(raw[9:], uint32(size))
		raw = binary.LittleEndian.AppendUint32(raw, crc32.ChecksumIEEE(raw))
	}
	w.buf.Write(raw)
	return w
}

func gtidBody(number int64) []byte {
	b := append([]byte{1}, make([]byte, 15)...)
	return binary.LittleEndian.AppendUint64(append([]byte{0}, b...), uint64(number))
}

func queryBody(sql string) []byte {
	b := make([]byte, 13)
	b[8] = 1 // length of the database name
	return append(append(b, 't', 0), sql...)
}

func tableMapBody(id byte) []byte {
	b := []byte{id, 0, 0, 0, 0, 0, 1, 0, 1, 't', 0, 1, 'a', 0}
	return append(b, 2, typeLong, typeVarChar, 2, 40, 0, 2)
}

func rowsBody(id byte, values ...string) []byte {
	b := []byte{id, 0, 0, 0, 0, 0, 1, 0, 2, 0, 2, 0xff}
	for i, v := range values {
		b = binary.LittleEndian.AppendUint32(append(b, 0), uint32(i))
		b = append(append(b, byte(len(v))), v...)
	}
	return b
}

func xidBody() []byte { return []byte{7, 0, 0, 0, 0, 0, 0, 0} }

func payloadBody(t testing.TB, events ...[]byte) []byte {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	inner := bytes.Join(events, nil)
	packed := enc.EncodeAll(inner, nil)
	b := []byte{2, 1, 0, 1, 3, 0xfc, byte(len(packed)), byte(len(packed) >> 8), 3, 3, 0xfc, byte(len(inner)), byte(len(inner) >> 8), 0}
	return append(b, packed...)
}

// sample is a log with one transaction of each shape.
func sample(t testing.TB, checksum bool) []byte {
	w := newLog(checksum)
	w.event(evGTID, gtidBody(1)).event(evQuery, queryBody("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(10))"))
	w.event(evGTID, gtidBody(2)).event(evQuery, queryBody("BEGIN")).event(evTableMap, tableMapBody(9)).event(evWriteRows, rowsBody(9, "x", "yy")).event(evXID, xidBody())
	w.event(evGTID, gtidBody(3)).event(evTransactionPayload, payloadBody(t,
		rawEvent(evQuery, queryBody("BEGIN"), 0), rawEvent(evTableMap, tableMapBody(9), 0), rawEvent(evDeleteRows, rowsBody(9, "x"), 0), rawEvent(evXID, xidBody(), 0)))
	w.event(evGTID, gtidBody(4)).event(evQuery, queryBody("XA COMMIT X'6731',X'',1"))
	return w.buf.Bytes()
}

// readLog gives the stories of a log's transactions and how it ended.
func readLog(t testing.TB, log []byte) ([]string, error) {
	return readLogAs(t, log, LogConfig{SpillBytes: 20, SpillDir: os.TempDir()})
}

func readLogAs(t testing.TB, log []byte, cfg LogConfig) ([]string, error) {
	r, err := NewLog(bytes.NewReader(log), cfg)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []string
	for {
		tx, err := r.Next()
		if err != nil {
			return out, err
		}
		out = append(out, story(t, tx))
		if err := tx.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

var sampleStories = []string{"ddl; CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(10))", "rows; insert a", "rows; delete a", "xa commit"}

func TestReadLog(t *testing.T) {
	for _, checksum := range []bool{false, true} {
		got, err := readLog(t, sample(t, checksum))
		if !errors.Is(err, io.EOF) || strings.Join(got, "|") != strings.Join(sampleStories, "|") {
			t.Errorf("checksum %t: %q, %v", checksum, got, err)
		}
	}
}

// PROTO-18, EXACT-18: with checksums no flipped bit goes unnoticed, wherever it is, and what comes out before it is right.
func TestFlippedBits(t *testing.T) {
	log := sample(t, true)
	for i := range log {
		damaged := bytes.Clone(log)
		damaged[i] ^= 1 << (i % 8)
		got, err := readLog(t, damaged)
		if ClassOf(err) != Corrupt {
			t.Fatalf("byte %d: %q, %v", i, got, err)
		}
		for n, s := range got {
			if s != sampleStories[n] {
				t.Fatalf("byte %d: %q", i, got)
			}
		}
	}
}

// A log that ends anywhere gives the transactions that are whole, and no other.
func TestTruncatedLog(t *testing.T) {
	log := sample(t, true)
	for n := range log {
		got, err := readLog(t, log[:n])
		if !errors.Is(err, io.EOF) && ClassOf(err) != Corrupt {
			t.Fatalf("%d bytes: %v", n, err)
		}
		for i, s := range got {
			if s != sampleStories[i] {
				t.Fatalf("%d bytes: %q", n, got)
			}
		}
	}
}

// What stands where it must not stand ends the stream; nothing is skipped.
func TestOutOfPlace(t *testing.T) {
	begin := func(w *logWriter) *logWriter {
		return w.event(evGTID, gtidBody(1)).event(evQuery, queryBody("BEGIN"))
	}
	for what, c := range map[string]struct {
		log   *logWriter
		class Class
	}{
		"rows without a table map":          {begin(newLog(true)).event(evWriteRows, rowsBody(9, "x")), Corrupt},
		"rows outside a transaction":        {newLog(true).event(evTableMap, tableMapBody(9)), Corrupt},
		"a map outlives its statement":      {begin(newLog(true)).event(evTableMap, tableMapBody(9)).event(evWriteRows, rowsBody(9, "x")).event(evWriteRows, rowsBody(9, "x")), Corrupt},
		"XID outside a transaction":         {newLog(true).event(evGTID, gtidBody(1)).event(evXID, xidBody()), Corrupt},
		"a GTID in a transaction":           {begin(newLog(true)).event(evGTID, gtidBody(2)), Corrupt},
		"a new file in a transaction":       {begin(newLog(true)).format(0), Corrupt},
		"BEGIN in a transaction":            {begin(newLog(true)).event(evQuery, queryBody("BEGIN")), Corrupt},
		"a payload without a GTID":          {newLog(true).event(evTransactionPayload, payloadBody(t)), Corrupt},
		"an empty payload":                  {newLog(true).event(evGTID, gtidBody(1)).event(evTransactionPayload, payloadBody(t)), Corrupt},
		"a payload with half a transaction": {newLog(true).event(evGTID, gtidBody(1)).event(evTransactionPayload, payloadBody(t, rawEvent(evQuery, queryBody("BEGIN"), 0))), Corrupt},
		"a payload of unknown compression":  {newLog(true).event(evGTID, gtidBody(1)).event(evTransactionPayload, []byte{2, 1, 5, 0}), Corrupt},
		"an incident":                       {newLog(true).event(evGTID, gtidBody(1)).event(evIncident, append([]byte{1, 0, 4}, "lost"...)), Incident}, // PROTO-20
		"an unknown event":                  {begin(newLog(true)).event(99, nil), UnknownEvent},
		"an event of MariaDB":               {begin(newLog(true)).event(162, nil), UnknownEvent},
	} {
		if got, err := readLog(t, c.log.buf.Bytes()); ClassOf(err) != c.class || len(got) != 0 {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}

// A source that died while it wrote a transaction starts a new file; the half transaction never was.
func TestCrashedSourceLeavesHalfATransaction(t *testing.T) {
	w := newLog(true)
	w.event(evGTID, gtidBody(1)).event(evQuery, queryBody("BEGIN")).event(evTableMap, tableMapBody(9)).event(evWriteRows, rowsBody(9, "lost"))
	log := append(w.buf.Bytes(), sample(t, true)[len(fileMagic):]...)
	got, err := readLog(t, log)
	if !errors.Is(err, io.EOF) || strings.Join(got, "|") != strings.Join(sampleStories, "|") {
		t.Errorf("%q, %v", got, err)
	}
}

// EXACT-08: a sign of life that comes inside a transaction moves nothing.
func TestNoProgressInsideATransaction(t *testing.T) {
	w := newLog(true).event(evHeartbeat, []byte("binlog.000001")).event(evGTID, gtidBody(1)).event(evQuery, queryBody("BEGIN"))
	w.event(evHeartbeat, []byte("binlog.000001")).event(evXID, xidBody()).event(evHeartbeat, []byte("binlog.000001"))
	r, err := NewLog(bytes.NewReader(w.buf.Bytes()), LogConfig{Name: "binlog.000001"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Kind{Progress, Empty, Progress} {
		if tx, err := r.reader.next(); err != nil || tx.Kind != want {
			t.Fatalf("%v, %v, want %s", tx, err, want)
		}
	}
}

// The offset in an event has 32 bits, a file with one huge transaction may be longer.
func TestOffsetsBeyond4GiB(t *testing.T) {
	a := newAssembler(nil, "", 0)
	a.pos.File, a.pos.Offset = "binlog.000001", 1<<32-10
	start := a.advance(header{Type: evXID, Size: 31, LogPos: 21})
	if start.Offset != 1<<32-10 || a.pos.Offset != 1<<32+21 {
		t.Errorf("from %d to %d", start.Offset, a.pos.Offset)
	}
}

func FuzzLog(f *testing.F) {
	f.Add(sample(f, true))
	f.Add(sample(f, false))
	f.Fuzz(func(t *testing.T, log []byte) {
		if _, err := readLog(t, log); err == nil {
			t.Fatal("no end")
		}
	})
}

func FuzzEvents(f *testing.F) {
	for typ, body := range map[eventType][]byte{
		evGTID: gtidBody(1), evQuery: queryBody("BEGIN"), evTableMap: tableMapBody(9), evWriteRows: rowsBody(9, "x"), evXAPrepare: {0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 'g'},
		evTransactionPayload: payloadBody(f, rawEvent(evXID, xidBody(), 0)), evRotate: append(make([]byte, 8), "binlog.000002"...),
		evHeartbeatV2: {1, 1, 'x', 2, 1, 4, 0}, evGTIDTagged: {2, 20, 0, 0, 0, 2, 2, 4, 6, 4, 'a', 'b', 12, 2}, evIncident: {1, 0, 1, 'x'},
	} {
		f.Add(byte(typ), body)
	}
	f.Fuzz(func(t *testing.T, typ byte, body []byte) {
		for _, ph := range []phase{phaseIdle, phaseHeaded, phaseOpen, phaseXA} {
			r := reader{asm: newAssembler(func(string, string) bool { return true }, os.TempDir(), 1<<20)}
			r.asm.formatted = true
			if r.asm.phase = ph; ph != phaseIdle {
				r.asm.tx = &Transaction{}
			}
			e, err := parseEvent(rawEvent(eventType(typ), body, 100), false)
			if err != nil {
				return
			}
			if tx, err := r.step(e, rawEvent(eventType(typ), body, 100)); tx != nil && err != nil {
				t.Fatal("a transaction and an error")
			}
			r.close()
		}
	})
}

func fuzzTable() *schema.Table {
	t := &schema.Table{Database: "t", Name: "a", Version: 1, Key: []int{0}}
	for i, typ := range []string{"int unsigned", "varchar(300)", "decimal(20,5)", "decimal(65,30)", "double", "date", "datetime(3)", "timestamp(6)", "time(5)", "year",
		"enum('a','b')", "set('a','b')", "bit(13)", "json", "binary(4)", "mediumint", "longblob", "char(3)"} {
		c, err := schema.ParseColumnType(typ)
		if err != nil {
			panic(err)
		}
		c.ID, c.Name, c.Nullable = uint32(i+1), typ, true
		if c.Type.IsText() || c.Type == schema.Enum || c.Type == schema.Set {
			c.Charset = "utf8mb4"
		}
		t.Columns = append(t.Columns, c)
	}
	t.Columns[0].Nullable = false
	return t
}

func mapOf(t *schema.Table) *TableMap {
	m := &TableMap{Database: t.Database, Table: t.Name}
	for i := range t.Columns {
		c, _ := expected(&t.Columns[i])
		c.nullable = t.Columns[i].Nullable
		m.columns = append(m.columns, c)
	}
	return m
}

func FuzzDecode(f *testing.F) {
	f.Add(byte(Insert), append([]byte{18, 0xff, 0xff, 3}, make([]byte, 200)...))
	f.Add(byte(Update), append([]byte{18, 0xff, 0xff, 3, 0xff, 0xff, 3}, make([]byte, 200)...))
	table := fuzzTable()
	m := mapOf(table)
	d, err := NewDecoder(m, table)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, action byte, body []byte) {
		rows, keys := column.NewBuilder(memory.DefaultAllocator, table), column.NewKeyBuilder(table)
		n := 0
		err := d.Decode(&RowsEvent{Table: m, Action: Action(action%4 + 1), body: body}, keys, rows, func() error { n++; return nil })
		if err == nil && n != max(rows.Rows(), keys.Keys().Len()) {
			t.Fatalf("%d rows, %d and %d in the sinks", n, rows.Rows(), keys.Keys().Len())
		}
	})
}

// Whatever the bytes, partial images give each sink as many rows as were told, and gaps only of columns that are there.
func FuzzDecodePartial(f *testing.F) {
	f.Add(byte(Insert), append([]byte{18, 0xff, 0xff, 3}, make([]byte, 200)...))
	f.Add(byte(Update), append([]byte{18, 1, 0, 0, 0x0e, 0, 0, 0}, make([]byte, 20)...))
	f.Add(byte(PartialUpdate), append([]byte{18, 1, 0, 0, 0xff, 0xff, 3, 0}, make([]byte, 200)...))
	f.Add(byte(Delete), []byte{18, 1, 0, 0, 0, 1, 2, 3, 4})
	table := fuzzTable()
	m := mapOf(table)
	d, err := NewDecoder(m, table)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, action byte, body []byte) {
		rows, keys := column.NewBuilder(memory.DefaultAllocator, table), column.NewKeyBuilder(table)
		n := 0
		err := d.DecodePartial(&RowsEvent{Table: m, Action: Action(action%4 + 1), body: body}, keys, rows, func(g *Gap) error {
			n++
			if g != nil && len(g.Columns)+len(g.Diffs) == 0 {
				t.Fatal("an empty gap")
			}
			return nil
		})
		if err == nil && n != max(rows.Rows(), keys.Keys().Len()) {
			t.Fatalf("%d rows, %d and %d in the sinks", n, rows.Rows(), keys.Keys().Len())
		}
	})
}

// A document stays one, whatever differences are applied to it.
func FuzzJSONDiff(f *testing.F) {
	doc := []byte(`{"a": 1, "bb": [1, {"k\"": null}, "x"], "ccc": {}}`)
	f.Add(doc, append([]byte{diffReplace, 3}, "$.a\x03\x05\x07\x00"...))
	f.Add(doc, append([]byte{diffInsert, 8}, "$.bb[12]\x02\x04\x01"...))
	f.Add(doc, append([]byte{diffInsert, 8}, "$.\"k\\\"\"\x02\x04\x01"...))
	f.Add(doc, append([]byte{diffRemove, 7}, "$.bb[1]"...))
	f.Add(doc, append([]byte{diffRemove, 10}, "$.bb[last]"...))
	f.Fuzz(func(t *testing.T, text, diffs []byte) {
		if !json.Valid(text) || !utf8.Valid(text) {
			return
		}
		out, err := AppendJSONDiff(nil, text, diffs)
		if err == nil && !json.Valid(out) {
			t.Fatalf("%q by %q became %q", text, diffs, out)
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte{jsonSmallObject, 1, 0, 12, 0, 11, 0, 1, 0, jsonInt16, 7, 0, 'a'})
	f.Add([]byte{jsonSmallArray, 2, 0, 13, 0, jsonLiteral, 1, 0, jsonString, 10, 0, 2, 'x', 'y'})
	f.Add([]byte{jsonOpaque, typeNewDecimal, 4, 3, 2, 0x81, 0x32})
	f.Add([]byte{jsonDouble, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f})
	f.Fuzz(func(t *testing.T, doc []byte) {
		text, err := appendJSON(nil, doc)
		if err != nil {
			return
		}
		if !utf8.Valid(text) || !json.Valid(text) {
			t.Fatalf("not JSON: %q", text)
		}
		if len(text) > 10*len(doc)+400 {
			t.Fatalf("%d bytes became %d", len(doc), len(text))
		}
	})
}

func FuzzTableMap(f *testing.F) {
	f.Add(tableMapBody(9))
	f.Add(append(tableMapBody(9), 1, 1, 0x80, 2, 1, 45, 4, 5, 1, 'a', 1, 'b', 1))
	f.Fuzz(func(_ *testing.T, b []byte) {
		if m, err := parseTableMap(b); err == nil {
			_, _ = NewDecoder(m, fuzzTable())
		}
	})
}

// recordSample is the byte form of events of each kind.
func recordSample(t testing.TB) []byte {
	m, err := ParseTableMap(tableMapBody(9))
	if err != nil {
		t.Fatal(err)
	}
	st, err := ParseStatement(queryBody("SAVEPOINT a"), 7)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewTransaction(XAPrepare, gtid.GTID{}, gtid.Position{}, gtid.Position{}, st,
		NewRowsEvent(m, Insert, rowsBody(9, "x")[10:]), NewRowsEvent(m, Delete, rowsBody(9, "y")[10:])).MarshalEvents()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestUnmarshalEvents(t *testing.T) {
	b := recordSample(t)
	tx, err := UnmarshalEvents(b)
	if err != nil || story(t, tx) != "; SAVEPOINT a; insert a; delete a" {
		t.Fatal(story(t, tx), err)
	}
	b[0]++
	if _, err := UnmarshalEvents(b); !errors.Is(err, ErrRecords) || !strings.Contains(err.Error(), "version 2") {
		t.Error(err)
	}
	for _, bad := range [][]byte{{}, {1, 2, 1, 0, 0}, {1, 9, 0, 0, 0}, {1, 1, 0, 0, 5, 0}, {1, 3, 0, 0, 0xff, 0xff, 0xff, 0xff, 3}} {
		if _, err := UnmarshalEvents(bad); !errors.Is(err, ErrRecords) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

func FuzzUnmarshalEvents(f *testing.F) {
	f.Add(recordSample(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		tx, err := UnmarshalEvents(b)
		if err != nil {
			return
		}
		again, err := tx.MarshalEvents()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := UnmarshalEvents(again); err != nil || story(t, back) != story(t, tx) {
			t.Fatal(err)
		}
	})
}
