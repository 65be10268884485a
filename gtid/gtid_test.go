package gtid

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

const (
	uuidA = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	uuidB = "f6a1c0de-0000-4000-8000-00000000000b"
)

func mustSet(t testing.TB, s string) Set {
	t.Helper()
	set, err := ParseSet(s)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestParseGTID(t *testing.T) {
	for _, s := range []string{uuidA + ":1", uuidA + ":app_1:77", uuidB + ":9223372036854775806"} {
		g, err := Parse(s)
		if err != nil || g.String() != s {
			t.Errorf("Parse(%q) = %q, %v", s, g, err)
		}
	}
	if g, err := Parse(" " + strings.ToUpper(uuidA) + ":App : 7\n"); err != nil || g.String() != uuidA+":app:7" {
		t.Errorf("upper case and spaces: %q, %v", g, err)
	}
	for _, s := range []string{"", uuidA, uuidA + ":", uuidA + ":0", uuidA + ":-1", uuidA + ":1:2", uuidA + ":9223372036854775807",
		"3e11fa47:1", uuidA + ":9a:1", uuidA + ":" + strings.Repeat("a", 33) + ":1", "zz11fa47-71ca-11e1-9e33-c80aa9429562:1"} {
		if g, err := Parse(s); err == nil {
			t.Errorf("Parse(%q) = %q, want an error", s, g)
		}
	}
}

// PROTO-06: gaps are kept, line breaks and upper-case UUIDs are read. PROTO-07: tags.
func TestParseSet(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "",
		" \n":                                   "",
		uuidA + ":300":                          uuidA + ":300",
		uuidA + ":1-50:60-70,\n" + uuidB + ":5": uuidA + ":1-50:60-70,\n" + uuidB + ":5",
		uuidB + ":5," + uuidA + ":1":            uuidA + ":1,\n" + uuidB + ":5",
		strings.ToUpper(uuidA) + " : 1 - 3 ":    uuidA + ":1-3",
		strings.ReplaceAll(uuidA, "-", "") + ":1": uuidA + ":1",
		uuidA + ":5:1-3:4":                        uuidA + ":1-5",
		uuidA + ":1-3," + uuidA + ":3-9":          uuidA + ":1-9",
		uuidA + ":3-1":                            "",
		uuidA + ":3-1:7":                          uuidA + ":7",
		uuidA + ":1-2:app:1-4:7:Zed:2":            uuidA + ":1-2:app:1-4:7:zed:2",
		uuidA + ":app:1," + uuidA + ":1":          uuidA + ":1:app:1",
	} {
		if got, err := ParseSet(in); err != nil || got.String() != want {
			t.Errorf("ParseSet(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"x", uuidA, uuidA + ":", uuidA + ":app", uuidA + ":1:app", uuidA + ":0", uuidA + ":1-2-3", uuidA + ":1;2"} {
		if got, err := ParseSet(in); err == nil {
			t.Errorf("ParseSet(%q) = %q, want an error", in, got)
		}
	}
}

func TestSetAlgebra(t *testing.T) {
	a := mustSet(t, uuidA+":1-10:20-30:t:5")
	for _, c := range []struct{ b, union, minus string }{
		{"", uuidA + ":1-10:20-30:t:5", uuidA + ":1-10:20-30:t:5"},
		{uuidA + ":11-19", uuidA + ":1-30:t:5", uuidA + ":1-10:20-30:t:5"},
		{uuidA + ":5-25", uuidA + ":1-30:t:5", uuidA + ":1-4:26-30:t:5"},
		{uuidA + ":t:5", uuidA + ":1-10:20-30:t:5", uuidA + ":1-10:20-30"},
		{uuidA + ":1-30:t:1-9", uuidA + ":1-30:t:1-9", ""},
		{uuidB + ":1", uuidA + ":1-10:20-30:t:5,\n" + uuidB + ":1", uuidA + ":1-10:20-30:t:5"},
	} {
		b := mustSet(t, c.b)
		if got := a.Union(b); got.String() != c.union || !got.Contains(a) || !got.Contains(b) {
			t.Errorf("union with %q = %q", c.b, got)
		}
		if got := a.Subtract(b); got.String() != c.minus {
			t.Errorf("minus %q = %q", c.b, got)
		}
	}
	if a.String() != uuidA+":1-10:20-30:t:5" {
		t.Errorf("an operand changed: %q", a)
	}
}

// TestSetAgainstMap compares every operation with a map of numbers, the dumb way.
func TestSetAgainstMap(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	uuids := []UUID{{1}, {2}}
	tags := []string{"", "x", "y"}
	random := func() (Set, map[GTID]bool) {
		var s Set
		m := map[GTID]bool{}
		for range rnd.IntN(40) {
			g := GTID{uuids[rnd.IntN(2)], tags[rnd.IntN(3)], 1 + rnd.Int64N(12)}
			before := s.String()
			next := s.Add(g)
			if s.String() != before {
				t.Fatalf("seed %d: Add changed its receiver", seed)
			}
			s, m[g] = next, true
		}
		return s, m
	}
	for range 500 {
		a, ma := random()
		b, mb := random()
		union, minus := a.Union(b), a.Subtract(b)
		contains := true
		for _, u := range uuids {
			for _, tag := range tags {
				for n := int64(1); n <= 14; n++ {
					g := GTID{u, tag, n}
					if a.Has(g) != ma[g] || union.Has(g) != (ma[g] || mb[g]) || minus.Has(g) != (ma[g] && !mb[g]) {
						t.Fatalf("seed %d: %q and %q differ from the map at %v", seed, a, b, g)
					}
					contains = contains && (!mb[g] || ma[g])
				}
			}
		}
		if a.Contains(b) != contains || a.Count() != uint64(len(ma)) || !union.Equal(b.Union(a)) {
			t.Fatalf("seed %d: %q and %q: Contains, Count or Equal is wrong", seed, a, b)
		}
		checkRoundTrip(t, a)
	}
}

func checkRoundTrip(t *testing.T, s Set) {
	t.Helper()
	if back := mustSet(t, s.String()); !back.Equal(s) {
		t.Fatalf("text: %q became %q", s, back)
	}
	back, rest, err := DecodeSet(append(s.AppendBinary(nil), "tail"...))
	if err != nil || !back.Equal(s) || string(rest) != "tail" {
		t.Fatalf("binary: %q became %q, rest %q, %v", s, back, rest, err)
	}
}

func TestSetLimits(t *testing.T) {
	s := mustSet(t, uuidA+":1:9223372036854775806")
	checkRoundTrip(t, s)
	checkRoundTrip(t, s.Subtract(mustSet(t, uuidA+":1")))
	checkRoundTrip(t, mustSet(t, uuidA+":1-9223372036854775806"))
	if !s.Add(GTID{}).Equal(s) || s.Has(GTID{}) {
		t.Error("the zero GTID is in a set")
	}
}

// The expected bytes follow mysql-server's Gtid_set::encode.
func TestAppendMySQL(t *testing.T) {
	plain := mustSet(t, "01000000-0000-0000-0000-000000000000:1-3").AppendMySQL(nil)
	want := append(append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 1}, make([]byte, 15)...),
		1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0)
	if !bytes.Equal(plain, want) {
		t.Errorf("untagged: % x", plain)
	}
	tagged := mustSet(t, "01000000-0000-0000-0000-000000000000:ab:7").AppendMySQL(nil)
	want = append(append([]byte{1, 1, 0, 0, 0, 0, 0, 1, 1}, make([]byte, 15)...),
		4, 'a', 'b', 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0)
	if !bytes.Equal(tagged, want) {
		t.Errorf("tagged: % x", tagged)
	}
}

func TestDecodeMySQL(t *testing.T) {
	for _, text := range []string{"", uuidA + ":1", uuidA + ":1-5:7-9," + uuidB + ":9223372036854775806", uuidA + ":1-5:7:x:2:y:3-9," + uuidB + ":9"} {
		b := mustSet(t, text).AppendMySQL(nil)
		if back, err := DecodeMySQL(b); err != nil || !back.Equal(mustSet(t, text)) {
			t.Errorf("%q became %q, %v", text, back, err)
		}
		for n := range b {
			if s, err := DecodeMySQL(b[:n]); !errors.Is(err, ErrDecode) {
				t.Errorf("%q cut off at %d is %q, %v", text, n, s, err)
			}
		}
		if s, err := DecodeMySQL(append(b, 0)); !errors.Is(err, ErrDecode) {
			t.Errorf("%q and a byte is %q, %v", text, s, err)
		}
	}
}

func TestPosition(t *testing.T) {
	order := []Position{{}, {"binlog.000009", 200}, {"binlog.000010", 4}, {"binlog.000010", 5}, {"binlog.999999", 4}, {"binlog.1000000", 4}}
	for i, p := range order {
		for j, q := range order {
			if got := p.Compare(q); got != min(1, max(-1, i-j)) {
				t.Errorf("%v against %v = %d", p, q, got)
			}
		}
		if back, err := ParsePosition(p.String()); i > 0 && (err != nil || back != p) {
			t.Errorf("text of %v: %v, %v", p, back, err)
		}
		if back, rest, err := DecodePosition(p.AppendBinary(nil)); err != nil || back != p || len(rest) != 0 {
			t.Errorf("binary of %v: %v, %v", p, back, err)
		}
	}
	if (Position{"a-bin.000001", 4}).SameSeries(Position{"b-bin.000001", 4}) || !order[1].SameSeries(order[2]) {
		t.Error("SameSeries")
	}
	for _, s := range []string{"", "x", ":4", "binlog.000001:", "binlog.000001:-1"} {
		if p, err := ParsePosition(s); err == nil {
			t.Errorf("ParsePosition(%q) = %v", s, p)
		}
	}
}

func TestPointAndIdentity(t *testing.T) {
	p := Point{mustSet(t, uuidA+":1-5:x:2"), Position{"binlog.000002", 1 << 40}}
	if back, rest, err := DecodePoint(append(p.AppendBinary(nil), 9)); err != nil || !back.Equal(p) || len(rest) != 1 {
		t.Errorf("point: %v, %v", back, err)
	}
	for _, id := range []Identity{
		{},
		{Start: p.Position, Committed: 1 << 60, FileCreated: 1<<32 - 1},
		{Source: UUID{9}, GTID: GTID{UUID{7}, "tag", MaxNumber}, Start: p.Position, Committed: 5, FileCreated: 6},
	} {
		if back, rest, err := DecodeIdentity(append(id.AppendBinary(nil), 9)); err != nil || back != id || len(rest) != 1 {
			t.Errorf("identity: %+v, %v", back, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := mustSet(t, uuidA+":1-5:x:2").AppendBinary(nil)
	for n := range good {
		if _, _, err := DecodeSet(good[:n]); !errors.Is(err, ErrDecode) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	future := bytes.Clone(good)
	future[0] = 2
	if _, _, err := DecodeSet(future); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("version 2: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	s, _ := ParseSet(uuidA + ":1-5:7:x:2," + uuidB + ":9")
	f.Add(s.AppendBinary(nil))
	f.Add(Point{s, Position{"binlog.000002", 4}}.AppendBinary(nil))
	f.Add(Identity{GTID: GTID{UUID{1}, "a", 7}, Start: Position{"b.1", 4}}.AppendBinary(nil))
	f.Add(s.AppendMySQL(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := DecodeMySQL(b); err == nil {
			checkRoundTrip(t, s)
			if again, err := DecodeMySQL(s.AppendMySQL(nil)); err != nil || !again.Equal(s) {
				t.Fatalf("%q became %q, %v", s, again, err)
			}
		}
		if s, rest, err := DecodeSet(b); err == nil {
			checkRoundTrip(t, s)
			if len(rest) > len(b) {
				t.Fatal("grew")
			}
		}
		if p, _, err := DecodePoint(b); err == nil {
			if back, _, err := DecodePoint(p.AppendBinary(nil)); err != nil || !back.Equal(p) {
				t.Fatalf("%v became %v", p, back)
			}
		}
		if i, _, err := DecodeIdentity(b); err == nil {
			if back, _, err := DecodeIdentity(i.AppendBinary(nil)); err != nil || back != i {
				t.Fatalf("%v became %v", i, back)
			}
		}
	})
}

func FuzzParseSet(f *testing.F) {
	f.Add(uuidA + ":1-5:7:x:2,\n" + uuidB + ":9")
	f.Fuzz(func(t *testing.T, in string) {
		if s, err := ParseSet(in); err == nil {
			checkRoundTrip(t, s)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	s := mustSet(b, uuidA+":1-100:200-300:400,"+uuidB+":1-9")
	u, _ := ParseUUID(uuidB)
	for i := range b.N {
		s = s.Add(GTID{Source: u, Number: int64(10 + i)})
	}
	if s.Count() < uint64(b.N) {
		b.Fatal("lost numbers")
	}
}
