package uniquekey

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

func sign(v int) int { return cmp.Compare(v, 0) }

// Order of bytes equals order of values, for every pair of a set that holds the borders of each length.
func TestIntegersKeepOrder(t *testing.T) {
	var values []*big.Int
	for shift := range 230 {
		for d := int64(-1); d <= 1; d++ {
			v := new(big.Int).Lsh(big.NewInt(1), uint(shift))
			v.Add(v, big.NewInt(d))
			values = append(values, v, new(big.Int).Neg(v))
		}
	}
	keys := make([][]byte, len(values))
	for i, v := range values {
		k, err := AppendBig(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = k
	}
	for i := range values {
		for j := range values {
			if sign(bytes.Compare(keys[i], keys[j])) != values[i].Cmp(values[j]) {
				t.Fatalf("%v against %v: keys %x, %x", values[i], values[j], keys[i], keys[j])
			}
		}
	}
}

// The narrow encoders give the bytes of the widest one, so that a widened column keeps its keys.
func TestIntegerEncodersAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	check := func(v *big.Int, got []byte) {
		t.Helper()
		want, _ := AppendBig(nil, v)
		if !bytes.Equal(got, want) {
			t.Fatalf("%v: got %x, want %x", v, got, want)
		}
	}
	for _, v := range []int64{0, 1, -1, 255, 256, -255, -256, math.MaxInt64, math.MinInt64, math.MinInt64 + 1} {
		check(big.NewInt(v), AppendInt(nil, v))
		check(big.NewInt(v), AppendInt128(nil, v>>63, uint64(v)))
	}
	for range 10000 {
		hi, lo := int64(r.Uint64())>>r.UintN(64), r.Uint64()>>r.UintN(64)
		v := new(big.Int).Add(new(big.Int).Lsh(big.NewInt(hi), 64), new(big.Int).SetUint64(lo))
		check(v, AppendInt128(nil, hi, lo))
		check(new(big.Int).SetUint64(lo), AppendUint(nil, lo))
		check(big.NewInt(hi), AppendInt(nil, hi))
	}
}

func TestFloatsKeepOrder(t *testing.T) {
	values := []float64{math.Inf(-1), -math.MaxFloat64, -1.5, -1, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 1, 1.5, math.MaxFloat64, math.Inf(1)}
	for i, a := range values {
		for j, b := range values {
			if sign(bytes.Compare(AppendFloat(nil, a), AppendFloat(nil, b))) != cmp.Compare(i, j) {
				t.Fatalf("%v against %v", a, b)
			}
		}
	}
	if !bytes.Equal(AppendFloat(nil, 0), AppendFloat(nil, math.Copysign(0, -1))) {
		t.Fatal("0 and -0 are two keys")
	}
}

// Composite keys compare part by part: a text part that is a prefix of another never mixes with the part behind it.
func TestBytesKeepOrderInCompositeKeys(t *testing.T) {
	texts := []string{"", "\x00", "\x00\x00", "\x00\x01", "\x00\xff", "\x01", "a", "a\x00", "a\x00b", "a\x01", "ab", "b", "\xff", "\xff\x00", "\xff\xff"}
	ints := []int64{math.MinInt64, -1, 0, 1, math.MaxInt64}
	type row struct {
		s string
		n int64
	}
	var rows []row
	for _, s := range texts {
		for _, n := range ints {
			rows = append(rows, row{s, n})
		}
	}
	key := func(r row) []byte { return AppendInt(AppendBytes(nil, []byte(r.s)), r.n) }
	for _, a := range rows {
		for _, b := range rows {
			want := cmp.Or(cmp.Compare(a.s, b.s), cmp.Compare(a.n, b.n))
			if sign(bytes.Compare(key(a), key(b))) != want {
				t.Fatalf("%+q against %+q", a.s, b.s)
			}
		}
	}
}

func FuzzBytesKeepOrder(f *testing.F) {
	f.Add([]byte("a"), []byte("a\x00"))
	f.Add([]byte{0, 1}, []byte{0, 0xff})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if sign(bytes.Compare(AppendBytes(nil, a), AppendBytes(nil, b))) != bytes.Compare(a, b) {
			t.Fatalf("%x against %x", a, b)
		}
	})
}

func TestBigTooLong(t *testing.T) {
	if _, err := AppendBig(nil, new(big.Int).Lsh(big.NewInt(1), 248)); err == nil {
		t.Fatal("no error for 249 bits")
	}
	if k, err := AppendBig(nil, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 248), big.NewInt(1))); err != nil || !slices.Contains(k, 0xff) {
		t.Fatal(k, err)
	}
}
