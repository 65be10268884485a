package uniquekey

import (
	"encoding/binary"
	"errors"
	"math"
)

// Locator says where a row is: the home (a part or a segment; one number space, never reused) and the row's place in
// it, from 0.
type Locator struct {
	Home uint64
	Row  uint32
}

// MaxLocatorBytes bounds the encoded size of a locator.
const MaxLocatorBytes = binary.MaxVarintLen64 + binary.MaxVarintLen32

var errLocatorDamaged = errors.New("damaged locator")

// AppendLocator appends the encoded form: uvarint home, uvarint row.
func AppendLocator(dst []byte, l Locator) []byte {
	dst = binary.AppendUvarint(dst, l.Home)
	return binary.AppendUvarint(dst, uint64(l.Row))
}

// DecodeLocator reads what AppendLocator wrote. Anything else, trailing bytes included, is an error.
func DecodeLocator(b []byte) (Locator, error) {
	home, n := binary.Uvarint(b)
	if n <= 0 || home == 0 {
		return Locator{}, errLocatorDamaged
	}
	row, m := binary.Uvarint(b[n:])
	if m <= 0 || row > math.MaxUint32 || n+m != len(b) {
		return Locator{}, errLocatorDamaged
	}
	return Locator{Home: home, Row: uint32(row)}, nil
}
