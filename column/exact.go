package column

import (
	"encoding/binary"
	"errors"
)

var (
	errNotDecimal      = errors.New("not a decimal number")
	errTooManyDecimals = errors.New("more fractional digits than the column's scale")
	errExactDamaged    = errors.New("damaged exact value")
)

// AppendExact adds one column's exact value to a row's exact form: uvarint column id, uvarint length, the bytes as
// MySQL prints them.
func AppendExact(dst []byte, column uint32, text []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(column))
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// WalkExact calls fn for each exact value of a row. The bytes point into b.
func WalkExact(b []byte, fn func(column uint32, text []byte)) error {
	for len(b) > 0 {
		id, n := binary.Uvarint(b)
		if n <= 0 || id > 1<<32-1 {
			return errExactDamaged
		}
		b = b[n:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return errExactDamaged
		}
		b = b[n:]
		fn(uint32(id), b[:size])
		b = b[size:]
	}
	return nil
}

// FindExact gives the exact value of one column of a row.
func FindExact(b []byte, column uint32) (text []byte, ok bool) {
	err := WalkExact(b, func(id uint32, t []byte) {
		if id == column {
			text, ok = t, true
		}
	})
	return text, ok && err == nil
}
