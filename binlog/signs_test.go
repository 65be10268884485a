package binlog

import "testing"

// Old servers leave YEAR out of the bits of signedness, new ones have it there.
func TestSignsBesideYear(t *testing.T) {
	long, year := byte(typeLong), byte(typeYear)
	for _, tc := range []struct {
		name  string
		types []byte
		bits  []byte
		want  string // of each column: u unsigned, s signed, ? not known, x the event makes no sense
	}{
		{"no year", []byte{long, long}, []byte{0b0100_0000}, "su"},
		{"year in front, new server", []byte{year, long, long}, []byte{0b1010_0000}, "???"},
		{"year in front, old server", []byte{year, long, long}, []byte{0b0100_0000}, "?su"},
		{"both readings say the same", []byte{year, long, long}, []byte{0b1110_0000}, "?uu"},
		{"year at the end", []byte{long, year}, []byte{0b0100_0000}, "s?"},
		{"size tells: old", []byte{year, long, long, long, long, long, long, long, long}, []byte{0b1000_0001}, "?ussssssu"},
		{"size tells: new", []byte{year, long, long, long, long, long, long, long, long}, []byte{0b1000_0001, 0b1000_0000}, "?ssssssuu"},
		{"only years", []byte{year, year}, []byte{0b1100_0000}, "??"},
		{"too short", []byte{long}, nil, "x"},
		{"too long", []byte{long}, []byte{0, 0}, "x"},
	} {
		m := &TableMap{columns: make([]mapColumn, len(tc.types))}
		for i, typ := range tc.types {
			m.columns[i].typ = typ
		}
		c := cursor{b: tc.bits}
		m.parseSigns(&c)
		got := ""
		for _, col := range m.columns {
			switch {
			case !col.signKnown:
				got += "?"
			case col.unsigned:
				got += "u"
			default:
				got += "s"
			}
		}
		if c.err != nil {
			got = "x"
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}
