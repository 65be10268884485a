package schema

import "testing"

// What rows get in a column that their INSERT did not name; what is not known exactly is never guessed at (TYPE-18).
func TestInsertDefault(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, tc := range []struct {
		name  string
		col   Column
		want  *string
		known bool
	}{
		{"nothing declared", Column{Type: Int, Nullable: true}, nil, true},
		{"a literal", Column{Type: VarChar, Default: text("dé"), Nullable: true}, text("dé"), true},
		{"NOT NULL without strict mode", Column{Type: Int}, text("0"), true},
		{"the first label", Column{Type: Enum, Elements: []string{"x", "y"}}, text("x"), true},
		{"zero bytes", Column{Type: Binary, Length: 2}, text("\x00\x00"), true},
		{"JSON has none", Column{Type: JSON}, nil, false},
		{"an expression", Column{Type: Int, Default: text("(1 + 1)"), DefaultExpr: true}, nil, false},
		{"a generated column", Column{Type: Int, Generated: "a + 1", Nullable: true}, nil, false},
		{"AUTO_INCREMENT", Column{Type: Int, AutoIncrement: true}, nil, false},
		{"all of a binary default", Column{Type: VarBinary, Length: 2, Default: text("0x6162")}, text("0x6162"), true},
		{"perhaps not all of one", Column{Type: VarBinary, Length: 4, Default: text("0x61")}, nil, false},
		{"an empty one", Column{Type: VarBinary, Length: 4, Default: text("")}, text(""), true},
		{"in a time zone that is not known", Column{Type: Timestamp, Default: text("2024-01-01 00:00:00")}, nil, false},
		{"in every time zone", Column{Type: Timestamp, Default: text("0000-00-00 00:00:00")}, text("0000-00-00 00:00:00"), true},
	} {
		got, known := tc.col.InsertDefault()
		if known != tc.known || known && (got == nil) != (tc.want == nil) || known && got != nil && *got != *tc.want {
			t.Errorf("%s: %v, %v", tc.name, got, known)
		}
	}
}
