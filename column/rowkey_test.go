package column

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/schema"
)

func multiset(cols ...schema.Column) *schema.Table {
	t := table(cols...)
	t.Key = nil
	return t
}

// sink is what both builders are.
type sink interface {
	Column(i int) Appender
	EndRow()
}

func oneKey(t *testing.T, def *schema.Table, put ...func(Appender)) []byte {
	t.Helper()
	b := NewKeyBuilder(def)
	give(b, put)
	keys, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return keys.At(0)
}

func give(b sink, put []func(Appender)) {
	for i, p := range put {
		p(b.Column(i))
	}
	b.EndRow()
}

// everyValue is a column of each kind with values of which each is another row.
var everyValue = []struct {
	col    schema.Column
	values []func(Appender)
}{
	{schema.Column{Type: schema.BigInt}, []func(Appender){null, func(a Appender) { a.Int(0) }, func(a Appender) { a.Int(-1) }, func(a Appender) { a.Int(math.MinInt64) }}},
	{schema.Column{Type: schema.BigInt, Unsigned: true}, []func(Appender){null, func(a Appender) { a.Uint(math.MaxUint64) }}},
	{schema.Column{Type: schema.Float, Scale: schema.FloatUnscaled}, []func(Appender){null, func(a Appender) { a.Float(0) }, func(a Appender) { a.Float(float32(math.Copysign(0, -1))) }, func(a Appender) { a.Float(0.1) }}},
	{schema.Column{Type: schema.Double, Scale: schema.FloatUnscaled}, []func(Appender){null, func(a Appender) { a.Double(0) }, func(a Appender) { a.Double(math.Copysign(0, -1)) }, func(a Appender) { a.Double(0.1) }}},
	{schema.Column{Type: schema.Decimal, Precision: 10, Scale: 2}, []func(Appender){null, func(a Appender) { a.DecimalText([]byte("0.00")) }, func(a Appender) { a.DecimalText([]byte("-1.5")) }}},
	{schema.Column{Type: schema.Decimal, Precision: 38, Scale: 2}, []func(Appender){null, func(a Appender) { a.DecimalText([]byte("123456789012345678901234567890.5")) }}},
	{schema.Column{Type: schema.Decimal, Precision: 65, Scale: 30}, []func(Appender){null, func(a Appender) { a.DecimalText([]byte("-12345678901234567890123456789012345.5")) }}},
	{schema.Column{Type: schema.Bit, Length: 64}, []func(Appender){null, func(a Appender) { a.Bit(0) }, func(a Appender) { a.Bit(math.MaxUint64) }}},
	{schema.Column{Type: schema.Date}, []func(Appender){null, func(a Appender) { a.Date(0, 0, 0) }, func(a Appender) { a.Date(2024, 2, 31) }, func(a Appender) { a.Date(2024, 2, 29) }}},
	{schema.Column{Type: schema.DateTime, FSP: 6}, []func(Appender){null, func(a Appender) { a.DateTime(0, 0, 0, 0, 0, 0, 0) }, func(a Appender) { a.DateTime(2024, 0, 1, 2, 3, 4, 5) }, func(a Appender) { a.DateTime(2024, 1, 1, 2, 3, 4, 5) }}},
	{schema.Column{Type: schema.Timestamp, FSP: 6}, []func(Appender){null, func(a Appender) { a.Timestamp(0, 0) }, func(a Appender) { a.Timestamp(1, 1) }}},
	{schema.Column{Type: schema.Time, FSP: 6}, []func(Appender){null, func(a Appender) { a.Time(0) }, func(a Appender) { a.Time(-3020399_000000) }}},
	{schema.Column{Type: schema.Year}, []func(Appender){null, func(a Appender) { a.Int(0) }, func(a Appender) { a.Int(2155) }}},
	{schema.Column{Type: schema.Char, Length: 9, Charset: "latin1"}, []func(Appender){null, func(a Appender) { a.Bytes(nil) }, func(a Appender) { a.Bytes([]byte("\xe9\x81")) }}},
	{schema.Column{Type: schema.VarChar, Length: 9, Charset: "utf8mb4"}, []func(Appender){null, func(a Appender) { a.Bytes([]byte("a")) }, func(a Appender) { a.Bytes([]byte("a ")) }, func(a Appender) { a.Bytes([]byte("a\xff")) }}},
	{schema.Column{Type: schema.LongText, Charset: "utf8mb4"}, []func(Appender){null, func(a Appender) { a.Bytes(bytes.Repeat([]byte("é"), 5000)) }, func(a Appender) { a.Bytes(bytes.Repeat([]byte("é"), 5001)) }}},
	{schema.Column{Type: schema.Binary, Length: 4}, []func(Appender){null, func(a Appender) { a.Bytes([]byte("ab\x00\x00")) }, func(a Appender) { a.Bytes([]byte("abc")) }}},
	{schema.Column{Type: schema.LongBlob}, []func(Appender){null, func(a Appender) { a.Bytes(nil) }, func(a Appender) { a.Bytes(make([]byte, 63)) }, func(a Appender) { a.Bytes(make([]byte, 64)) }, func(a Appender) { a.Bytes(make([]byte, 1<<20)) }}},
	{schema.Column{Type: schema.Enum, Elements: []string{"", "b"}}, []func(Appender){null, func(a Appender) { a.Enum(0) }, func(a Appender) { a.Enum(1) }, func(a Appender) { a.Enum(2) }}},
	{schema.Column{Type: schema.Set, Elements: []string{"a", "b"}}, []func(Appender){null, func(a Appender) { a.Set(0) }, func(a Appender) { a.Set(3) }}},
	{schema.Column{Type: schema.JSON}, []func(Appender){null, func(a Appender) { a.JSON([]byte(`null`)) }, func(a Appender) { a.JSON([]byte(`{"a": 1.0}`)) }, func(a Appender) { a.JSON([]byte(`"` + strings.Repeat("x", 100) + `"`)) }}},
}

func null(a Appender) { a.Null() }

// The keys of a row are the same from before images, from new rows and from stored rows, for all that a column can have;
// other values give other keys. KEY-14: -0 and 0 are two values where the whole row counts, as they are in row images.
func TestRowKeys(t *testing.T) {
	for _, tc := range everyValue {
		c := tc.col
		c.ColumnType = c.Type.String()
		def := multiset(id, c)
		rows, before := NewBuilder(memory.DefaultAllocator, def), NewKeyBuilder(def)
		for _, put := range tc.values {
			for _, b := range []sink{rows, before} {
				b.Column(0).Int(7)
				put(b.Column(1))
				b.EndRow()
			}
		}
		keys, err := before.Finish()
		if err != nil {
			t.Fatalf("%s: %v", c.Type, err)
		}
		batch, err := rows.Finish()
		if err != nil {
			t.Fatalf("%s: %v", c.Type, err)
		}
		again := batch.Slice(0, batch.Rows())
		again.Keys = Keys{}
		if again, err = again.WithKeys(); err != nil {
			t.Fatalf("%s: %v", c.Type, err)
		}
		seen := map[string]int{}
		for i := range tc.values {
			k := keys.At(i)
			if len(k) != RowHashLen || !bytes.Equal(k, batch.Keys.At(i)) || !bytes.Equal(k, again.Keys.At(i)) {
				t.Errorf("%s, value %d: keys %x, %x, %x", c.Type, i, k, batch.Keys.At(i), again.Keys.At(i))
			}
			if j, ok := seen[string(k)]; ok {
				t.Errorf("%s: values %d and %d have one key", c.Type, i, j)
			}
			seen[string(k)] = i
		}
	}
}

// A row without the trailing zero bytes of BINARY(n) is the row with them.
func TestRowKeyOfPaddedBinary(t *testing.T) {
	def := multiset(schema.Column{Type: schema.Binary, Length: 4})
	short := oneKey(t, def, func(a Appender) { a.Bytes([]byte("ab")) })
	if long := oneKey(t, def, func(a Appender) { a.Bytes([]byte("ab\x00\x00")) }); !bytes.Equal(short, long) {
		t.Errorf("%x and %x", short, long)
	}
}

// ADD COLUMN and a change of order keep the keys of old rows; a value other than the one they got is another row.
func TestRowKeysSurviveAddColumn(t *testing.T) {
	text := schema.Column{Name: "v", Type: schema.VarChar, Length: 20, Charset: "utf8mb4"}
	one, x := func(a Appender) { a.Int(1) }, func(a Appender) { a.Bytes([]byte("x")) }
	old := multiset(id, text)
	was := oneKey(t, old, one, x)

	initial := "2024-02-30"
	later := old.Clone()
	later.Version = 2
	later.Columns = slices.Insert(later.Columns, 0, schema.Column{ID: 3, Name: "d", Type: schema.Date, Added: true, Initial: &initial})
	later.Columns = append(later.Columns, schema.Column{ID: 4, Name: "n", Type: schema.Int, Nullable: true, Added: true})
	same := func(a Appender) { a.Date(2024, 2, 30) }
	if now := oneKey(t, later, same, one, x, null); !bytes.Equal(was, now) {
		t.Errorf("an old row's key was %x, is %x", was, now)
	}
	for name, put := range map[string][]func(Appender){
		"another value":            {func(a Appender) { a.Date(2024, 2, 29) }, one, x, null},
		"NULL instead of a value":  {null, one, x, null},
		"a value instead of NULL":  {same, one, x, one},
		"values of other columns":  {same, one, null, one},
		"NULL in an old column":    {same, null, x, null},
		"another value, as before": {same, one, func(a Appender) { a.Bytes([]byte("X")) }, null},
	} {
		if now := oneKey(t, later, put...); bytes.Equal(was, now) {
			t.Errorf("%s: the key is still %x", name, now)
		}
	}

	b := NewBuilder(memory.DefaultAllocator, old)
	give(b, []func(Appender){one, x})
	batch, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	batch.Keys = Keys{}
	projected, err := batch.Project(later)
	if err != nil {
		t.Fatal(err)
	}
	if projected, err = projected.WithKeys(); err != nil || !bytes.Equal(projected.Keys.At(0), was) {
		t.Errorf("the key of the row read under the later definition is %x, %v", projected.Keys.At(0), err)
	}
}

// An initial value that can't be read is an error and not another key.
func TestRowKeyOfDamagedInitial(t *testing.T) {
	initial := "seven"
	def := multiset(id, schema.Column{Type: schema.Int, Added: true, Initial: &initial})
	b := NewKeyBuilder(def)
	give(b, []func(Appender){func(a Appender) { a.Int(1) }, func(a Appender) { a.Int(1) }})
	if _, err := b.Finish(); err == nil {
		t.Error("no error")
	}
}

// Numbers tell equal rows apart, and go with their rows through everything that is done to batches.
func TestNumbers(t *testing.T) {
	def := multiset(id)
	build := func(values ...int64) *Batch {
		b := NewBuilder(memory.DefaultAllocator, def)
		for _, v := range values {
			give(b, []func(Appender){func(a Appender) { a.Int(v) }})
		}
		batch, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		return batch
	}
	plain := build(5, 5, 3, 5)
	numbered := plain.Numbered(40)
	check := func(what string, b *Batch, numbers ...int64) {
		t.Helper()
		b, err := b.WithKeys()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(b.Numbers.Int64Values(), numbers) {
			t.Fatalf("%s: numbers %v, not %v", what, b.Numbers.Int64Values(), numbers)
		}
		for i, n := range numbers {
			k := b.Keys.At(i)
			if len(k) != RowHashLen+8 || binary.BigEndian.Uint64(k[RowHashLen:]) != uint64(n) {
				t.Errorf("%s: row %d has key %x", what, i, k)
			}
		}
	}
	check("numbered", numbered, 40, 41, 42, 43)
	if !bytes.Equal(numbered.Keys.At(0)[:RowHashLen], plain.Keys.At(0)) || !bytes.HasPrefix(numbered.Keys.At(3), plain.Keys.At(1)) {
		t.Error("equal rows begin with other hashes")
	}
	check("slice", numbered.Slice(1, 3), 41, 42)
	check("take", numbered.Take([]int{3, 0}), 43, 40)
	bare := numbered.Take([]int{2, 0})
	bare.Keys = Keys{}
	check("computed anew", bare, 42, 40)
	joined, err := Concat([]*Batch{numbered, build(1).Numbered(7)})
	if err != nil {
		t.Fatal(err)
	}
	check("joined", joined, 40, 41, 42, 43, 7)
	if _, err := Concat([]*Batch{plain, numbered}); err == nil {
		t.Error("rows with and without numbers were joined")
	}
	if _, err := Concat([]*Batch{numbered, plain}); err == nil {
		t.Error("rows with and without numbers were joined")
	}
	later := def.Clone()
	later.Version = 2
	projected, err := numbered.Project(later)
	if err != nil {
		t.Fatal(err)
	}
	check("projected", projected, 40, 41, 42, 43)
}

func BenchmarkRowKeys(b *testing.B) {
	def := multiset(id, schema.Column{Type: schema.VarChar, Charset: "utf8mb4"}, schema.Column{Type: schema.DateTime}, schema.Column{Type: schema.Decimal, Precision: 10, Scale: 2})
	k := NewKeyBuilder(def)
	text, amount := []byte("some text of a row"), []byte("1234.56")
	for b.Loop() {
		k.Column(0).Int(42)
		k.Column(1).Bytes(text)
		k.Column(2).DateTime(2024, 1, 2, 3, 4, 5, 6)
		k.Column(3).DecimalText(amount)
		k.EndRow()
		k.Keys().Reset()
	}
}
