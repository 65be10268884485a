package binlog

import (
	"encoding/hex"
	"errors"
	"fmt"
)

// Column types of the binlog (mysql-server, include/field_types.h).
const (
	typeTiny       = 1
	typeShort      = 2
	typeLong       = 3
	typeFloat      = 4
	typeDouble     = 5
	typeNull       = 6
	typeTimestamp  = 7
	typeLongLong   = 8
	typeInt24      = 9
	typeDate       = 10
	typeTime       = 11
	typeDateTime   = 12
	typeYear       = 13
	typeNewDate    = 14
	typeVarChar    = 15
	typeBit        = 16
	typeTimestamp2 = 17
	typeDateTime2  = 18
	typeTime2      = 19
	typeTypedArray = 20
	typeVector     = 242
	typeJSON       = 245
	typeNewDecimal = 246
	typeEnum       = 247
	typeSet        = 248
	typeTinyBlob   = 249
	typeMediumBlob = 250
	typeLongBlob   = 251
	typeBlob       = 252
	typeVarString  = 253
	typeString     = 254
	typeGeometry   = 255
)

// TableMap is the source's description of a table, logged in front of its row events. Streams give the same pointer
// for the same description as long as they can, so that it may serve as a key of a cache of decoders.
type TableMap struct {
	ID       uint64
	Database string
	Table    string

	raw     []byte // body of the event
	columns []mapColumn
	problem error // why the columns can not be decoded
}

// Columns is the number of columns of the table's row images.
func (m *TableMap) Columns() int { return len(m.columns) }

// mapColumn is one column as the table map has it.
type mapColumn struct {
	typ      byte // ENUM and SET already told from STRING
	length   int  // bytes: of the longest string, of a length prefix, of an ENUM or SET value
	bits     int  // of BIT
	prec     int  // DECIMAL
	scale    int
	fsp      int
	nullable bool

	// From the optional metadata, zero where the source does not send it.
	signKnown bool
	unsigned  bool
	collation int
	name      string
	labels    [][]byte
}

// tableName reads as much of a TABLE_MAP event as tells which table it is.
func (c *cursor) tableName() (id uint64, database, table []byte) {
	id = c.uint(6)
	c.u16() // flags
	database = c.take(c.length())
	c.u8()
	table = c.take(c.length())
	c.u8()
	return id, database, table
}

// parseTableMap reads a TABLE_MAP event, whose body b it keeps. Columns that are well-formed but of a type that can not be read leave a
// problem in the result, which is that table's alone; a returned error means that the bytes make no sense.
func parseTableMap(b []byte) (*TableMap, error) {
	c := cursor{b: b}
	id, db, table := c.tableName()
	m := &TableMap{ID: id, Database: string(db), Table: string(table), raw: b}
	n := c.length()
	types := c.take(n)
	meta := cursor{b: c.take(c.length())}
	nulls := c.take((n + 7) / 8)
	if c.err != nil {
		return nil, fmt.Errorf("table map of %s.%s: %w", db, table, c.err)
	}
	m.columns = make([]mapColumn, n)
	for i, t := range types {
		col := &m.columns[i]
		col.typ, col.nullable = t, nulls[i/8]>>(i%8)&1 == 1
		if m.problem = col.parseMeta(&meta); m.problem != nil {
			m.problem = fmt.Errorf("column %d: %w", i+1, m.problem)
			return m, nil //nolint:nilerr // the problem is the table's alone
		}
	}
	if meta.err != nil || len(meta.b) > 0 {
		return nil, fmt.Errorf("table map of %s.%s: column metadata does not fit", db, table)
	}
	if err := m.parseOptional(c.b); err != nil {
		return nil, fmt.Errorf("table map of %s.%s: optional metadata: %w", db, table, err)
	}
	return m, nil
}

func (col *mapColumn) parseMeta(c *cursor) error {
	switch col.typ {
	case typeTiny, typeShort, typeLong, typeLongLong, typeInt24, typeDate, typeNewDate, typeYear, typeNull:
	case typeFloat, typeDouble, typeBlob, typeGeometry, typeJSON, typeVector:
		col.length = int(c.u8())
	case typeTimestamp2, typeDateTime2, typeTime2:
		col.fsp = int(c.u8())
	case typeVarChar, typeVarString:
		col.length = int(c.u16())
	case typeBit:
		rest, whole := int(c.u8()), int(c.u8())
		col.bits, col.length = whole*8+rest, (whole*8+rest+7)/8
	case typeNewDecimal:
		col.prec, col.scale = int(c.u8()), int(c.u8())
	case typeString:
		col.parseStringMeta(c.u8(), c.u8())
	case typeTimestamp, typeTime, typeDateTime:
		return errors.New("it has the storage format of MySQL 5.5; rebuild the table on the source with ALTER TABLE .. FORCE")
	default:
		return fmt.Errorf("binlog column type %d is not supported", col.typ)
	}
	return nil
}

// parseStringMeta undoes the packing of CHAR, BINARY, ENUM and SET: the first byte is the real type, with bits 8 and 9
// of the length, inverted, in its bits 4 and 5.
func (col *mapColumn) parseStringMeta(b0, b1 byte) {
	if b0&0x30 != 0x30 {
		col.typ, col.length = b0|0x30, int(b1)|int(b0&0x30^0x30)<<4
		return
	}
	col.typ, col.length = b0, int(b1)
}

func (col *mapColumn) isNumeric() bool {
	switch col.typ {
	case typeTiny, typeShort, typeInt24, typeLong, typeLongLong, typeNewDecimal, typeFloat, typeDouble:
		return true
	}
	return false
}

func (col *mapColumn) isCharacter() bool {
	switch col.typ {
	case typeString, typeVarString, typeVarChar, typeBlob:
		return true
	}
	return false
}

func (col *mapColumn) isEnum() bool      { return col.typ == typeEnum }
func (col *mapColumn) isSet() bool       { return col.typ == typeSet }
func (col *mapColumn) isEnumOrSet() bool { return col.typ == typeEnum || col.typ == typeSet }

// parseOptional reads the metadata that servers since 8.0 add (binlog_row_metadata). Fields of unknown type are for
// checks only and are left out.
func (m *TableMap) parseOptional(b []byte) error {
	c := cursor{b: b}
	for len(c.b) > 0 && c.err == nil {
		kind := c.u8()
		field := cursor{b: c.take(c.length())}
		switch kind {
		case 1:
			m.parseSigns(&field)
		case 2:
			m.parseDefaultCollation(&field, (*mapColumn).isCharacter)
		case 3:
			m.parseCollations(&field, (*mapColumn).isCharacter)
		case 4:
			for i := range m.columns {
				m.columns[i].name = string(field.take(field.length()))
			}
		case 5:
			m.parseLabels(&field, (*mapColumn).isSet)
		case 6:
			m.parseLabels(&field, (*mapColumn).isEnum)
		case 10:
			m.parseDefaultCollation(&field, (*mapColumn).isEnumOrSet)
		case 11:
			m.parseCollations(&field, (*mapColumn).isEnumOrSet)
		}
		c.check(field.err)
	}
	return c.err
}

// each calls f with the columns that want accepts, in order.
func (m *TableMap) each(want func(*mapColumn) bool, f func(n int, col *mapColumn)) {
	n := 0
	for i := range m.columns {
		if col := &m.columns[i]; want(col) {
			f(n, col)
			n++
		}
	}
}

// parseSigns reads a bit for each numeric column. Servers since about 8.0.23 also have one for each YEAR, which is always
// set, and nothing says which kind the server is: where size and bits allow both readings, the signs in which they agree
// are known.
func (m *TableMap) parseSigns(c *cursor) {
	old, recent := m.signs(c.b, false), m.signs(c.b, true)
	if old == nil && recent == nil {
		c.fail(errShort)
		return
	}
	for i := range m.columns {
		col := &m.columns[i]
		switch {
		case !col.isNumeric():
		case old == nil:
			col.signKnown, col.unsigned = true, recent[i]
		case recent == nil || old[i] == recent[i]:
			col.signKnown, col.unsigned = true, old[i]
		}
	}
}

// signs tells for each column whether it is unsigned, if the bits are those of numeric columns, and of years if they
// have any; nil if they can't be.
func (m *TableMap) signs(bits []byte, years bool) []bool {
	out := make([]bool, len(m.columns))
	n := 0
	for i := range m.columns {
		col := &m.columns[i]
		year := years && col.typ == typeYear
		if !year && !col.isNumeric() {
			continue
		}
		if n/8 >= len(bits) {
			return nil
		}
		out[i] = bits[n/8]>>(7-n%8)&1 == 1
		if year && !out[i] {
			return nil
		}
		n++
	}
	if len(bits) != (n+7)/8 {
		return nil
	}
	return out
}

func (m *TableMap) parseDefaultCollation(c *cursor, want func(*mapColumn) bool) {
	common := int(c.lenenc())
	other := map[int]int{}
	for len(c.b) > 0 {
		n := int(c.lenenc())
		other[n] = int(c.lenenc())
	}
	m.each(want, func(n int, col *mapColumn) {
		col.collation = common
		if id, ok := other[n]; ok {
			col.collation = id
		}
	})
}

func (m *TableMap) parseCollations(c *cursor, want func(*mapColumn) bool) {
	m.each(want, func(_ int, col *mapColumn) { col.collation = int(c.lenenc()) })
}

func (m *TableMap) parseLabels(c *cursor, want func(*mapColumn) bool) {
	m.each(want, func(_ int, col *mapColumn) {
		n := c.length()
		col.labels = make([][]byte, n)
		for i := range col.labels {
			col.labels[i] = c.take(c.length())
		}
	})
}

func decodeHex(s string) (string, error) {
	b, err := hex.DecodeString(s)
	if err != nil {
		return "", errors.New("bad hexadecimal digits")
	}
	return string(b), nil
}
