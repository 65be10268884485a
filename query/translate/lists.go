package translate

import (
	"fmt"
	"strings"
)

// listFunctions are the text functions over several values or parts of a text.
func listFunctions() map[string]builtin {
	return map[string]builtin{
		"substring_index": {3, 3, fnSubstringIndex}, "find_in_set": {2, 2, fnFindInSet},
		"field": {2, -1, fnField}, "elt": {2, -1, fnElt}, "format": {2, 2, fnFormat},
		"crc32": {1, 1, fnCRC32}, "bit_length": {1, 1, fnBitLength}, "bin": {1, 1, fnBin}, "rand": {0, 0, fnRand},
	}
}

func fnSubstringIndex(t *translator, e *env, args []expr) (expr, error) {
	ts, c, err := t.allTexts("substring_index", args[:2])
	if err != nil {
		return expr{}, err
	}
	n, err := t.position(args[2])
	return textResult(fmt.Sprintf("tm_substring_index(%s, %s, %s)", ts[0].sql, ts[1].sql, n), ts[0].typ.Length, c, args...), err
}

// fnFindInSet finds a text among the parts of a list, by collation.
func fnFindInSet(t *translator, e *env, args []expr) (expr, error) {
	ts, c, err := t.allTexts("find_in_set", args)
	if err != nil {
		return expr{}, err
	}
	if c.coer == None {
		return expr{}, unsupported("FIND_IN_SET over text of different collations")
	}
	needle, err := collationKey(ts[0].sql, c.coll, false)
	if err != nil {
		return expr{}, err
	}
	part, err := collationKey("p", c.coll, false)
	sql := fmt.Sprintf("(CASE WHEN %[1]s = '' OR contains(%[2]s, ',') THEN 0 * length(%[2]s) ELSE coalesce(list_position(list_transform(string_split(%[1]s, ','), lambda p: %[3]s), %[4]s), 0 * length(%[1]s) * length(%[2]s)) END)",
		ts[1].sql, ts[0].sql, part, needle)
	return bigintResult("CAST("+sql+" AS BIGINT)", 3, args...), err
}

// fnField gives the place of the first value among those that follow, 0 when it is not there or NULL.
func fnField(t *translator, e *env, args []expr) (expr, error) {
	kind := args[0].typ.Kind
	var b strings.Builder
	b.WriteString("(CASE")
	compare, err := t.comparer("field", args, compareBy)
	if err != nil {
		return expr{}, unsupported("FIELD over text of different collations")
	}
	for i, x := range args[1:] {
		if x.typ.Kind != kind || kind != KindString && kind != KindInt && kind != KindDecimal {
			return expr{}, unsupported("FIELD over values of different types")
		}
		c, err := compare("=", args[0], x)
		if err != nil {
			return expr{}, err
		}
		fmt.Fprintf(&b, " WHEN %s THEN %d", c.sql, i+1)
	}
	b.WriteString(" ELSE 0 END)")
	return bigintResult(b.String(), 3), nil
}

// fnElt gives the n-th of the values that follow, NULL when there is none.
func fnElt(t *translator, e *env, args []expr) (expr, error) {
	ts, c, err := t.allTexts("elt", args[1:])
	if err != nil {
		return expr{}, err
	}
	n, err := t.position(args[0])
	if err != nil {
		return expr{}, err
	}
	var b strings.Builder
	length := 0
	for i := range ts {
		fmt.Fprintf(&b, " WHEN %d THEN %s", i+1, ts[i].sql)
		length = max(length, ts[i].typ.Length)
	}
	out := textResult("(CASE "+n+b.String()+" END)", length, c)
	out.typ.Nullable = true
	return out, nil
}

// maxFormatScale is the largest number of decimals that FORMAT takes.
const maxFormatScale = 30

// fnFormat translates FORMAT(x, d) of integers and decimals.
func fnFormat(t *translator, e *env, args []expr) (expr, error) {
	x, err := t.oneNumber("FORMAT", args[0])
	if err != nil {
		return x, err
	}
	l := args[1].lit
	if x.typ.Kind == KindDouble || l == nil || l.Kind != IntValue || l.Int > maxFormatScale {
		return x, unsupported("FORMAT of a floating-point number, or to a number of digits that is no constant")
	}
	scale := int(max(l.Int, 0))
	x = x.decimal()
	p := phys{k: physDecimal, p: min(x.phys.p-x.phys.s+scale+2, maxDuckDecimal), s: scale}
	c := collated{coll: t.effective(collationByName(t.session.Collation)), coer: Coercible, ascii: true}
	return textResult(fmt.Sprintf("tm_grouped(CAST(CAST(%s AS %s) AS VARCHAR))", x.sql, p), 34, c, args...), nil
}

func fnCRC32(t *translator, e *env, args []expr) (expr, error) {
	if args[0].typ.isBit() {
		return expr{}, unsupported("CRC32 over BIT")
	}
	b, err := t.text(args[0]).bytes()
	out := bigintResult("tm_crc32("+b+")", 10, args...)
	out.typ.Unsigned = true
	return out, err
}

func fnBitLength(t *translator, e *env, args []expr) (expr, error) {
	x, err := fnLength(t, e, args)
	x.sql, x.typ.Length = "("+x.sql+" * 8)", 11
	return x, err
}

func fnBin(t *translator, e *env, args []expr) (expr, error) {
	if args[0].typ.Kind != KindInt {
		return expr{}, unsupported("BIN over values that are no integers")
	}
	b, err := t.bits(args[0])
	c := collated{coll: t.effective(collationByName(t.session.Collation)), coer: Coercible, ascii: true}
	return textResult("bin("+b+")", 65, c, args...), err
}

// fnRand: any number will do.
func fnRand(t *translator, e *env, args []expr) (expr, error) {
	return expr{sql: "random()", typ: doubleType(), phys: phys{k: physDouble}}, nil
}
