// Package gtid holds MySQL's replication coordinates as values: single GTIDs, sets of them, positions in
// binlog files, and the point at which a commit stands.
//
// All types are immutable values: a method never changes its receiver and a copy never shares a change with its
// original. Nothing here does I/O.
//
// The text forms are MySQL's own (Reference Manual, "GTID Format and Storage"). The binary forms are Tidemark's,
// carry a version, and are described in docs/format/gtid.md.
package gtid

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// UUID is a server_uuid, the source id of a GTID.
type UUID [16]byte

// ParseUUID reads the forms that MySQL reads: 32 hexadecimal digits of either case, with dashes in the usual places
// or without any.
func ParseUUID(s string) (UUID, error) {
	var u UUID
	digits := s
	if len(s) == 36 {
		if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return UUID{}, fmt.Errorf("gtid: %q is not a UUID", s)
		}
		digits = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	if len(digits) != 32 {
		return UUID{}, fmt.Errorf("gtid: %q is not a UUID", s)
	}
	if _, err := hex.Decode(u[:], []byte(digits)); err != nil {
		return UUID{}, fmt.Errorf("gtid: %q is not a UUID", s)
	}
	return u, nil
}

// IsZero reports whether u is unset.
func (u UUID) IsZero() bool { return u == UUID{} }

// String is the lower-case form with dashes.
func (u UUID) String() string {
	var b [36]byte
	hex.Encode(b[0:8], u[0:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:36], u[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// MaxNumber is the largest transaction number that MySQL assigns (its GNO_END - 1).
const MaxNumber = 1<<63 - 2

// maxTag is the greatest length of a tag in bytes.
const maxTag = 32

// GTID names one transaction. The zero GTID stands for "none": an anonymous transaction of a server with
// gtid_mode = OFF.
type GTID struct {
	Source UUID
	Tag    string // lower case, empty for a GTID without a tag
	Number int64  // 1..MaxNumber
}

// Parse reads uuid:number or uuid:tag:number.
func Parse(s string) (GTID, error) {
	parts := strings.Split(strings.TrimSpace(s), ":")
	if len(parts) != 2 && len(parts) != 3 {
		return GTID{}, fmt.Errorf("gtid: %q is not of the form uuid:number or uuid:tag:number", s)
	}
	var g GTID
	var err error
	if g.Source, err = ParseUUID(strings.TrimSpace(parts[0])); err != nil {
		return GTID{}, err
	}
	if len(parts) == 3 {
		if g.Tag, err = parseTag(strings.TrimSpace(parts[1])); err != nil {
			return GTID{}, err
		}
	}
	g.Number, err = parseNumber(strings.TrimSpace(parts[len(parts)-1]))
	if err != nil {
		return GTID{}, err
	}
	return g, nil
}

// IsZero reports whether g names no transaction.
func (g GTID) IsZero() bool { return g == GTID{} }

// String is MySQL's form; the zero GTID prints as the empty string.
func (g GTID) String() string {
	if g.IsZero() {
		return ""
	}
	n := strconv.FormatInt(g.Number, 10)
	if g.Tag == "" {
		return g.Source.String() + ":" + n
	}
	return g.Source.String() + ":" + g.Tag + ":" + n
}

func parseNumber(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n == 0 || n > MaxNumber {
		return 0, fmt.Errorf("gtid: %q is not a transaction number", s)
	}
	return int64(n), nil
}

// parseTag accepts what MySQL accepts: a letter or underscore, then letters, digits and underscores, 32 in all, case
// folded.
func parseTag(s string) (string, error) {
	t := strings.ToLower(s)
	if !validTag(t) || t == "" {
		return "", fmt.Errorf("gtid: %q is not a tag", s)
	}
	return t, nil
}

// validTag reports whether t is empty or a tag in its stored form.
func validTag(t string) bool {
	if len(t) > maxTag {
		return false
	}
	for i := range len(t) {
		c := t[i]
		letter := c == '_' || 'a' <= c && c <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}
