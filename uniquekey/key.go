// Package uniquekey holds the pure core of row identity: the bytes that name a row, the locators that say where a row
// is, and the bitmaps that say which rows are dead.
//
// # Key bytes
//
// The key of a row is the concatenation of its encoded key parts, in key order. Comparing keys bytewise compares the
// parts in order by value:
//
//   - integers (also DECIMAL scaled to an integer, dates and times packed into one, ENUM indexes, SET and BIT masks) are
//     one lead byte 0x80+n for values >= 0, or 0x7F-n for values < 0, then the n bytes of the magnitude, big-endian
//     without leading zeros, complemented for values < 0. The form does not depend on the column's width or signedness;
//   - bytes and text (the stored bytes in the column's character set, not collation weights: row images name rows by
//     their stored bytes, and byte identity is exact because MySQL never holds two keys its collation calls equal) have
//     each 0x00 as 0x00 0xFF and end with 0x00 0x01;
//   - FLOAT and DOUBLE are the IEEE 754 bits of the double, sign bit flipped, or all bits complemented when negative.
//
// The encoding is final for [Encoding] 1: see docs/format/key.md.
package uniquekey

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"math/bits"
)

// Encoding is the version of the key encoding that this package writes. A generation records the version of its keys.
const Encoding = 1

const (
	leadZero    = 0x80
	escapeByte  = 0x00
	escaped00   = 0xFF
	terminator  = 0x01
	maxIntBytes = 31
)

// AppendInt appends a signed integer.
func AppendInt(dst []byte, v int64) []byte {
	if v >= 0 {
		return AppendUint(dst, uint64(v))
	}
	return appendNegative(dst, uint64(-(v+1))+1)
}

// AppendUint appends an unsigned integer.
func AppendUint(dst []byte, v uint64) []byte {
	n := (bits.Len64(v) + 7) / 8
	dst = append(dst, leadZero+byte(n))
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

func appendNegative(dst []byte, magnitude uint64) []byte {
	n := (bits.Len64(magnitude) + 7) / 8
	dst = append(dst, leadZero-1-byte(n))
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, ^byte(magnitude>>(8*i)))
	}
	return dst
}

// AppendBig appends an integer of up to 248 bits, such as a DECIMAL(65,30) without its point.
func AppendBig(dst []byte, v *big.Int) ([]byte, error) {
	magnitude := v.Bytes()
	if len(magnitude) > maxIntBytes {
		return dst, errors.New("integer key part exceeds 248 bits")
	}
	if v.Sign() >= 0 {
		dst = append(dst, leadZero+byte(len(magnitude)))
		return append(dst, magnitude...), nil
	}
	dst = append(dst, leadZero-1-byte(len(magnitude)))
	for _, b := range magnitude {
		dst = append(dst, ^b)
	}
	return dst, nil
}

// AppendInt128 appends the signed 128-bit integer hi<<64 | lo.
func AppendInt128(dst []byte, hi int64, lo uint64) []byte {
	if hi == 0 {
		return AppendUint(dst, lo)
	}
	if hi > 0 {
		n := (bits.Len64(uint64(hi)) + 7) / 8
		dst = append(dst, leadZero+byte(n)+8)
		for i := n - 1; i >= 0; i-- {
			dst = append(dst, byte(hi>>(8*i)))
		}
		return binary.BigEndian.AppendUint64(dst, lo)
	}
	mlo, borrow := bits.Sub64(0, lo, 0)
	mhi, _ := bits.Sub64(0, uint64(hi), borrow)
	if mhi == 0 {
		return appendNegative(dst, mlo)
	}
	n := (bits.Len64(mhi) + 7) / 8
	dst = append(dst, leadZero-1-byte(n)-8)
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, ^byte(mhi>>(8*i)))
	}
	return binary.BigEndian.AppendUint64(dst, ^mlo)
}

// AppendFloat appends a FLOAT or DOUBLE value. -0 and 0 are one key, as they are in MySQL.
func AppendFloat(dst []byte, v float64) []byte {
	if v == 0 {
		v = 0
	}
	b := math.Float64bits(v)
	if b>>63 != 0 {
		b = ^b
	} else {
		b |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(dst, b)
}

// AppendBytes appends text or binary stored bytes.
func AppendBytes(dst, v []byte) []byte {
	for {
		i := bytes.IndexByte(v, escapeByte)
		if i < 0 {
			dst = append(dst, v...)
			return append(dst, escapeByte, terminator)
		}
		dst = append(dst, v[:i]...)
		dst = append(dst, escapeByte, escaped00)
		v = v[i+1:]
	}
}
