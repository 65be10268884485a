package wire

import (
	"slices"
	"testing"
)

func TestParseAddresses(t *testing.T) {
	for in, want := range map[string][]Address{
		"db:3307": {{"db", 3307}}, "db": {{"db", 3306}}, "::1": {{"::1", 3306}}, "[::1]:33": {{"::1", 33}}, "[::1]": {{"::1", 3306}},
		"a, b:33 ,[::1]:3307": {{"a", 3306}, {"b", 33}, {"::1", 3307}},
	} {
		if first, others, err := ParseAddresses(in); err != nil || first != want[0] || !slices.Equal(others, want[1:]) {
			t.Errorf("%s: %v, %v, %v", in, first, others, err)
		}
	}
	for _, in := range []string{"", ":3306", "db:", "db:0", "db:99999", "a:b:c", "a,", "a,a:3306"} {
		if first, others, err := ParseAddresses(in); err == nil {
			t.Errorf("%s: %v, %v", in, first, others)
		}
	}
}
