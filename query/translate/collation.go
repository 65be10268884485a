package translate

import (
	"strings"

	"github.com/tidemarkdb/tidemark/query/collate"
)

// Coercibility is the strength of an expression's collation; a lower value wins.
type Coercibility uint8

// The strengths, with the numbers that COERCIBILITY() gives.
const (
	Explicit  Coercibility = 0 // COLLATE clause
	None      Coercibility = 1 // two strings whose collations conflict
	Implicit  Coercibility = 2 // a column
	SysConst  Coercibility = 3 // USER(), VERSION()
	Coercible Coercibility = 4 // a literal
	Numeric   Coercibility = 5 // a number or a temporal value
	Ignorable Coercibility = 6 // NULL
)

// String gives the name MySQL uses in its error 1267.
func (c Coercibility) String() string {
	return [...]string{"EXPLICIT", "NONE", "IMPLICIT", "SYSCONST", "COERCIBLE", "NUMERIC", "IGNORABLE"}[c]
}

// Collation is one MySQL collation.
type Collation struct {
	ID      int
	Name    string
	Charset string
	// Binary collations compare code points; PadSpace ones ignore trailing spaces.
	Binary   bool
	PadSpace bool
	// known tells that the engine has its weights.
	known bool
}

var collationsByName = func() map[string]*Collation {
	m := map[string]*Collation{}
	for _, c := range collate.All() {
		m[c.Name()] = &Collation{
			ID: c.ID(), Name: c.Name(), Charset: c.Charset(), Binary: c.CodePoints() || c.Identity(), PadSpace: c.PadSpace(), known: true,
		}
	}
	return m
}()

var (
	collationBinary = collationsByName["binary"]
	collationUTF8   = collationsByName["utf8mb3_general_ci"]
)

// collationByName finds a collation. One that this package has no entry for is made up so that it can be carried and
// shown, and is refused where its order would matter.
func collationByName(name string) *Collation {
	name = strings.ToLower(name)
	if rest, ok := strings.CutPrefix(name, "utf8_"); ok {
		name = "utf8mb3_" + rest
	}
	if c := collationsByName[name]; c != nil {
		return c
	}
	charset, _, _ := strings.Cut(name, "_")
	return &Collation{Name: name, Charset: charset, PadSpace: true}
}

func binaryCollationOf(charset string) *Collation {
	if charset == "binary" {
		return collationBinary
	}
	return collationByName(charset + "_bin")
}

func isUnicode(charset string) bool { return strings.HasPrefix(charset, "utf8") }

// superset tells that every string of charset b has a form in charset a.
func superset(a, b string) bool {
	switch {
	case a == "utf8mb4", a == "utf8mb3" && b != "utf8mb4":
		return b != "binary"
	case a == "latin1":
		return b == "ascii"
	}
	return false
}

// mixCollations finds the collation in which strings are compared or joined by MySQL's coercibility rules. ok is false
// when MySQL refuses the mix (error 1267). A result of coercibility None can be joined and shown, not compared.
func mixCollations(a, b collated) (c collated, ok bool) {
	switch {
	case a.coll == b.coll:
		if b.coer < a.coer {
			return b, true
		}
		return a, true
	case a.coll == collationBinary || b.coll == collationBinary:
		return mixBinary(a, b), true
	case a.coll.Charset == b.coll.Charset:
		return mixSameCharset(a, b)
	}
	return mixCharsets(a, b)
}

// collated is the part of an expression's type that collation rules look at. ascii tells that the text certainly has
// only ASCII characters, constant that it can be converted to another character set beforehand.
type collated struct {
	coll  *Collation
	coer  Coercibility
	ascii bool
	// fits tells whether a constant can be converted to a character set without loss; nil for what is not constant.
	fits func(charset string) bool
}

// mixBinary: the weaker coercibility gives way; at equal strength the byte string wins.
func mixBinary(a, b collated) collated {
	if a.coer < b.coer || a.coer == b.coer && a.coll == collationBinary {
		return a
	}
	return b
}

func mixSameCharset(a, b collated) (collated, bool) {
	switch {
	case a.coer < b.coer:
		return a, true
	case b.coer < a.coer:
		return b, true
	case a.coer == Explicit || a.coll.Binary && b.coll.Binary:
		return a, false
	case a.coll.Binary:
		return a, true
	case b.coll.Binary:
		return b, true
	}
	return collated{coll: binaryCollationOf(a.coll.Charset), coer: None}, true
}

// mixCharsets: a pure ASCII string takes the other side's collation when that is as strong; a Unicode side takes the
// other one in; a constant is converted when nothing is lost.
func mixCharsets(a, b collated) (collated, bool) {
	switch {
	case a.coer <= b.coer && superset(a.coll.Charset, b.coll.Charset):
		return a, true
	case b.coer <= a.coer && superset(b.coll.Charset, a.coll.Charset):
		return b, true
	case a.coer <= b.coer && b.converts(a.coll.Charset):
		return a, true
	case b.coer <= a.coer && a.converts(b.coll.Charset):
		return b, true
	}
	return a, false
}

func (c collated) converts(charset string) bool {
	return c.ascii || c.coer >= Coercible && c.fits != nil && c.fits(charset)
}
