// Package collate compares text as MySQL's collations do.
//
// Text is UTF-8, whatever the column's character set; the collations of other character sets convert it. The tables of
// weights come from vitess.io/vitess; the tests compare them, and everything built on them here, with a MySQL server.
//
// Two questions are answered: [Collation.SortKey] for =, <, GROUP BY, DISTINCT, JOIN and ORDER BY, and [Collation.Like]
// for LIKE, which MySQL decides character by character: 'ß' = 'ss' holds in utf8mb4_0900_ai_ci, 'ß' LIKE 'ss' does not.
package collate

import (
	"bytes"
	"sync"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/mysql/collations/colldata"

	"github.com/tidemarkdb/tidemark/schema"
)

// Collation is one of MySQL's collations. It is safe for concurrent use.
type Collation struct {
	id      int
	name    string
	charset string
	// pad tells that trailing spaces do not count in comparisons (PAD SPACE).
	pad bool
	// unit is the number of bytes of one weight; 0: the text's own bytes are its weights.
	unit int
	// plain tells that the weights of a text are those of its characters one by one, without levels between.
	plain   bool
	weights colldata.Collation

	once    sync.Once
	space   []byte
	classes classes
}

// ID is MySQL's number of the collation, as in information_schema.COLLATIONS.
func (c *Collation) ID() int { return c.id }

// Name is MySQL's name of the collation.
func (c *Collation) Name() string { return c.name }

// Charset is the character set that the collation belongs to.
func (c *Collation) Charset() string { return c.charset }

// PadSpace tells whether trailing spaces do not count in comparisons. In LIKE they always do.
func (c *Collation) PadSpace() bool { return c.pad }

// Identity tells that a text is its own sort key, and that LIKE compares characters by their code points (bytes for
// the collation "binary").
func (c *Collation) Identity() bool { return c.unit == 0 && !c.pad && c.charset != "latin1" }

// CodePoints tells that LIKE compares characters by their code points.
func (c *Collation) CodePoints() bool { return c.unit == 0 && c.charset != "binary" }

const (
	noPad    = false
	padSpace = true
)

// The order of levels makes the weights of accent- and case-sensitive collations depend on more than one character.
var all = []*Collation{
	{id: 255, name: "utf8mb4_0900_ai_ci", charset: "utf8mb4", pad: noPad, unit: 2, plain: true},
	{id: 305, name: "utf8mb4_0900_as_ci", charset: "utf8mb4", pad: noPad, unit: 2},
	{id: 278, name: "utf8mb4_0900_as_cs", charset: "utf8mb4", pad: noPad, unit: 2},
	{id: 309, name: "utf8mb4_0900_bin", charset: "utf8mb4", pad: noPad, plain: true},
	{id: 45, name: "utf8mb4_general_ci", charset: "utf8mb4", pad: padSpace, unit: 2, plain: true},
	{id: 224, name: "utf8mb4_unicode_ci", charset: "utf8mb4", pad: padSpace, unit: 2, plain: true},
	{id: 246, name: "utf8mb4_unicode_520_ci", charset: "utf8mb4", pad: padSpace, unit: 2, plain: true},
	{id: 46, name: "utf8mb4_bin", charset: "utf8mb4", pad: padSpace, plain: true},
	{id: 33, name: "utf8mb3_general_ci", charset: "utf8mb3", pad: padSpace, unit: 2, plain: true},
	{id: 192, name: "utf8mb3_unicode_ci", charset: "utf8mb3", pad: padSpace, unit: 2, plain: true},
	{id: 83, name: "utf8mb3_bin", charset: "utf8mb3", pad: padSpace, plain: true},
	{id: 8, name: "latin1_swedish_ci", charset: "latin1", pad: padSpace, unit: 1, plain: true},
	{id: 48, name: "latin1_general_ci", charset: "latin1", pad: padSpace, unit: 1, plain: true},
	{id: 49, name: "latin1_general_cs", charset: "latin1", pad: padSpace, unit: 1, plain: true},
	{id: 47, name: "latin1_bin", charset: "latin1", pad: padSpace, plain: true},
	{id: 11, name: "ascii_general_ci", charset: "ascii", pad: padSpace, unit: 1, plain: true},
	{id: 65, name: "ascii_bin", charset: "ascii", pad: padSpace, plain: true},
	{id: 63, name: "binary", charset: "binary", pad: noPad, plain: true},
}

// ByID finds a collation by MySQL's number; nil when it is not supported.
func ByID(id int) *Collation {
	for _, c := range all {
		if c.id == id {
			return c
		}
	}
	return nil
}

// All lists the supported collations.
func All() []*Collation { return append([]*Collation(nil), all...) }

func (c *Collation) load() {
	c.once.Do(func() {
		c.weights = colldata.Lookup(collations.ID(c.id))
		c.space = c.appendWeights(nil, []byte(" "))
	})
}

// appendWeights adds the weights of a text: MySQL's WEIGHT_STRING() but for the collations whose text is its own
// weights.
func (c *Collation) appendWeights(dst, text []byte) []byte {
	if c.charset != "latin1" {
		if c.unit == 0 {
			return append(dst, text...)
		}
		if c.olderUCA() && bytes.Contains(text, lastOfPlane) {
			return c.appendPieces(dst, text)
		}
		return c.weights.WeightString(dst, text, 0)
	}
	stored, ok := schema.FromUTF8(c.charset, text)
	if !ok {
		return c.appendForeign(dst, text)
	}
	if c.unit == 0 {
		return append(dst, stored...)
	}
	return c.weights.WeightString(dst, stored, 0)
}

// lastOfPlane is U+FFFF, for which the table of UCA 4.0.0 in vitess has nothing and MySQL an implicit weight.
var (
	lastOfPlane       = []byte("\uffff")
	lastOfPlaneWeight = []byte{0xFB, 0xC1, 0xFF, 0xFF}
)

func (c *Collation) appendPieces(dst, text []byte) []byte {
	for i, piece := range bytes.Split(text, lastOfPlane) {
		if i > 0 {
			dst = append(dst, lastOfPlaneWeight...)
		}
		dst = c.weights.WeightString(dst, piece, 0)
	}
	return dst
}

// olderUCA tells the collations of UCA 4.0.0.
func (c *Collation) olderUCA() bool { return c.id == 224 || c.id == 192 }

// appendForeign adds the weights of a text with characters that the character set does not have. MySQL has no order for
// them; here they come after all others, and differ from each other.
func (c *Collation) appendForeign(dst, text []byte) []byte {
	for _, r := range string(text) {
		one := []byte(string(r))
		if _, ok := schema.FromUTF8(c.charset, one); ok {
			dst = c.appendWeights(dst, one)
		} else {
			dst = append(dst, 0xFF, byte(r>>16), byte(r>>8), byte(r))
		}
	}
	return dst
}
