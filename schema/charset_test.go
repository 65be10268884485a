package schema

import (
	"bytes"
	"testing"
)

// Every byte of latin1 is a character of its own and comes back (TYPE-13).
func TestLatin1RoundTrip(t *testing.T) {
	var all []byte
	for c := range 256 {
		all = append(all, byte(c))
	}
	text, ok := ToUTF8("latin1", all)
	if !ok {
		t.Fatal("latin1 has invalid bytes")
	}
	back, ok := FromUTF8("latin1", text)
	if !ok || !bytes.Equal(back, all) {
		t.Fatalf("%x", back)
	}
}

func TestInvalidBytes(t *testing.T) {
	for _, tc := range []struct {
		charset, in, out string
		ok               bool
	}{
		{"utf8mb4", "aé😀", "aé😀", true},
		{"utf8mb4", "a\xffb\xe2\x82", "a\ufffdb\ufffd\ufffd", false},
		{"utf8mb3", "aé", "aé", true},
		{"ascii", "a\x80", "a\ufffd", false},
	} {
		got, ok := ToUTF8(tc.charset, []byte(tc.in))
		if string(got) != tc.out || ok != tc.ok {
			t.Errorf("%s %q: %q, %v", tc.charset, tc.in, got, ok)
		}
	}
	if _, ok := ToUTF8("utf8mb3", []byte("😀")); ok {
		t.Error("a supplementary character is valid in utf8mb3")
	}
	if _, ok := FromUTF8("latin1", []byte("漢")); ok {
		t.Error("漢 has a form in latin1")
	}
}
