package translate

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
)

func stringFunctions() map[string]builtin {
	return map[string]builtin{
		"concat": {1, -1, fnConcat}, "concat_ws": {2, -1, fnConcatWS},
		"length": {1, 1, fnLength}, "octet_length": {1, 1, fnLength},
		"char_length": {1, 1, fnCharLength}, "character_length": {1, 1, fnCharLength},
		"left": {2, 2, fnLeft}, "right": {2, 2, fnRight},
		"substring": {2, 3, fnSubstring}, "substr": {2, 3, fnSubstring}, "mid": {3, 3, fnSubstring},
		"upper": {1, 1, fnCase("tm_upper")}, "ucase": {1, 1, fnCase("tm_upper")},
		"lower": {1, 1, fnCase("tm_lower")}, "lcase": {1, 1, fnCase("tm_lower")},
		"ltrim": {1, 1, fnTrimSide("ltrim")}, "rtrim": {1, 1, fnTrimSide("rtrim")},
		"reverse": {1, 1, fnReverse}, "replace": {3, 3, fnReplace},
		"locate": {2, 3, fnLocate}, "position": {2, 2, fnLocate}, "instr": {2, 2, fnInstr},
		"hex": {1, 1, fnHex}, "ascii": {1, 1, fnASCII},
		"lpad": {3, 3, fnPad("lpad")}, "rpad": {3, 3, fnPad("rpad")}, "repeat": {2, 2, fnRepeat}, "space": {1, 1, fnSpace},
		"md5": {1, 1, fnHash("md5", 32)}, "sha1": {1, 1, fnHash("sha1", 40)}, "sha": {1, 1, fnHash("sha1", 40)},
		"strcmp": {2, 2, fnStrcmp},
	}
}

// textResult makes a text made from x, in its collation.
func textResult(sql string, length int, c collated, args ...expr) expr {
	x := expr{sql: sql, typ: textType(length, c.coll, c.coer), phys: phys{k: physText}, ascii: c.ascii}
	if length > 1<<16/maxBytesPerChar {
		x.typ.Field = mysql.TypeBlob
	}
	return nullableBy(x, args)
}

// oneText converts an argument to text; byte strings are refused.
func (t *translator) oneText(name string, x expr) (expr, collated, error) {
	if x.typ.isBit() {
		return x, collated{}, unsupported("%s over BIT", name)
	}
	s := t.text(x)
	if s.phys.k == physBlob {
		return s, collated{}, unsupported("%s over byte strings", name)
	}
	c := s.collated()
	c.ascii = s.ascii
	return s, c, nil
}

// comparing are the functions that compare their arguments by collation.
var comparing = map[string]bool{"replace": true, "locate": true, "strcmp": true}

// allTexts converts arguments to text in one collation.
func (t *translator) allTexts(name string, xs []expr) ([]expr, collated, error) {
	for i := range xs {
		if xs[i].typ.isBit() {
			return nil, collated{}, unsupported("%s over BIT", name)
		}
	}
	op := ""
	if comparing[name] {
		op = name
	}
	ts, c, err := t.texts(op, xs...)
	if err != nil {
		return nil, c, err
	}
	for i := range ts {
		if ts[i].phys.k == physBlob {
			return nil, c, unsupported("%s over byte strings", name)
		}
	}
	return ts, c, nil
}

func fnConcat(t *translator, e *env, args []expr) (expr, error) {
	ts, c, err := t.allTexts("concat", args)
	if err != nil {
		return expr{}, err
	}
	length := 0
	parts := make([]string, len(ts))
	for i := range ts {
		parts[i], length = ts[i].sql, length+ts[i].typ.Length
	}
	return textResult("("+strings.Join(parts, " || ")+")", length, c, args...), nil
}

func fnConcatWS(t *translator, e *env, args []expr) (expr, error) {
	ts, c, err := t.allTexts("concat_ws", args)
	if err != nil {
		return expr{}, err
	}
	length := ts[0].typ.Length * (len(ts) - 2)
	parts := make([]string, len(ts))
	for i := range ts {
		parts[i] = ts[i].sql
		if i > 0 {
			length += ts[i].typ.Length
		}
	}
	sql := fmt.Sprintf("(CASE WHEN %s IS NOT NULL THEN concat_ws(%s) END)", parts[0], strings.Join(parts, ", "))
	return textResult(sql, length, c, args[0]), nil
}

func fnLength(t *translator, e *env, args []expr) (expr, error) {
	s := t.text(args[0])
	switch {
	case args[0].typ.isBit():
		return s, unsupported("LENGTH over BIT")
	case s.phys.k == physBlob:
		return bigintResult("octet_length("+s.sql+")", 10, args...), nil
	case s.ascii || isUnicode(s.typ.Collation.Charset):
		return bigintResult("strlen("+s.sql+")", 10, args...), nil
	case s.typ.Collation.Charset == "latin1" || s.typ.Collation.Charset == "ascii":
		return bigintResult("length("+s.sql+")", 10, args...), nil
	}
	return s, unsupported("LENGTH over text in character set %s", s.typ.Collation.Charset)
}

func fnCharLength(t *translator, e *env, args []expr) (expr, error) {
	s := t.text(args[0])
	switch {
	case args[0].typ.isBit():
		return s, unsupported("CHAR_LENGTH over BIT")
	case s.phys.k == physBlob:
		return bigintResult("octet_length("+s.sql+")", 10, args...), nil
	}
	return bigintResult("length("+s.sql+")", 10, args...), nil
}

// position gives an integer argument such as a length; constants as they are.
func (t *translator) position(x expr) (string, error) {
	i, err := t.integer(x)
	if err != nil {
		return "", err
	}
	if i.phys.k == physUint64 {
		return fmt.Sprintf("CAST(CASE WHEN %[1]s > 9223372036854775807 THEN 9223372036854775807 ELSE %[1]s END AS BIGINT)", i.sql), nil
	}
	return i.number().bigint(), nil
}

func constantLength(x expr, most int) int {
	if x.lit != nil && x.lit.Kind == IntValue {
		return int(max(min(x.lit.Int, int64(most)), 0))
	}
	return most
}

func fnLeft(t *translator, e *env, args []expr) (expr, error) {
	s, c, err := t.oneText("left", args[0])
	if err != nil {
		return s, err
	}
	n, err := t.position(args[1])
	sql := fmt.Sprintf("left(%s, %s)", s.sql, lengthSQL(n))
	return textResult(guardNull(sql, args[1], n), constantLength(args[1], s.typ.Length), c, args...), err
}

// lengthSQL bounds a number of characters to what DuckDB accepts.
func lengthSQL(n string) string { return fmt.Sprintf("greatest(least(%s, 4294967295), 0)", n) }

// guardNull keeps NULL where greatest would leave it out.
func guardNull(sql string, x expr, n string) string {
	if !x.typ.Nullable {
		return sql
	}
	return fmt.Sprintf("(CASE WHEN %s IS NOT NULL THEN %s END)", n, sql)
}

func fnRight(t *translator, e *env, args []expr) (expr, error) {
	s, c, err := t.oneText("right", args[0])
	if err != nil {
		return s, err
	}
	n, err := t.position(args[1])
	sql := fmt.Sprintf("right(%s, %s)", s.sql, lengthSQL(n))
	return textResult(guardNull(sql, args[1], n), constantLength(args[1], s.typ.Length), c, args...), err
}

// fnSubstring: position 0 gives an empty string, a negative one counts from the end and gives an empty string before
// the start.
func fnSubstring(t *translator, e *env, args []expr) (expr, error) {
	s, c, err := t.oneText("substr", args[0])
	if err != nil {
		return s, err
	}
	pos, err := t.position(args[1])
	if err != nil {
		return s, err
	}
	count, length := "", s.typ.Length
	if len(args) == 3 {
		n, err := t.position(args[2])
		if err != nil {
			return s, err
		}
		count, length = ", "+guardNull(lengthSQL(n), args[2], n), constantLength(args[2], s.typ.Length)
	}
	bounded := pos
	if l := args[1].lit; l == nil || l.Kind != IntValue || l.Int > 1<<31 {
		bounded = fmt.Sprintf("least(%s, 4294967295)", pos)
	}
	plain := fmt.Sprintf("substring(%s, %s%s)", s.sql, bounded, count)
	if l := args[1].lit; l == nil || l.Kind != IntValue || l.Int <= 0 {
		plain = fmt.Sprintf("(CASE WHEN %[1]s = 0 OR %[1]s < -length(%[2]s) THEN left(%[2]s, 0) ELSE %[3]s END)", pos, s.sql, plain)
	}
	return textResult(guardNull(plain, args[1], pos), length, c, args...), nil
}

func fnCase(name string) builder {
	return func(t *translator, e *env, args []expr) (expr, error) {
		s, c, err := t.oneText(strings.TrimPrefix(name, "tm_"), args[0])
		if err != nil {
			return s, err
		}
		if s.ascii {
			return textResult(strings.TrimPrefix(name, "tm_")+"("+s.sql+")", s.typ.Length, c, args...), nil
		}
		if !c.coll.known {
			return s, unsupported("UPPER and LOWER by collation %s", c.coll.Name)
		}
		return textResult(fmt.Sprintf("%s(%s, %d)", name, s.sql, c.coll.ID), s.typ.Length, c, args...), nil
	}
}

func fnTrimSide(name string) builder {
	return func(t *translator, e *env, args []expr) (expr, error) {
		s, c, err := t.oneText(name, args[0])
		return textResult(fmt.Sprintf("%s(%s, ' ')", name, s.sql), s.typ.Length, c, args...), err
	}
}

// trim translates TRIM([BOTH|LEADING|TRAILING] [what] FROM x) for a constant of one character.
func (t *translator) trim(e *env, n *ast.FuncCallExpr) (expr, error) {
	args, err := t.exprs(e, n.Args[:min(len(n.Args), 2)])
	if err != nil {
		return expr{}, err
	}
	s, c, err := t.oneText("trim", args[0])
	if err != nil {
		return s, err
	}
	what := " "
	if len(args) == 2 {
		if args[1].lit == nil || args[1].lit.Kind == NullValue {
			if args[1].typ.Kind != KindString || args[1].lit == nil {
				return s, unsupported("TRIM of something that is no constant")
			}
		}
		what = args[1].lit.Text
	}
	if len([]rune(what)) != 1 {
		return s, unsupported("TRIM of more or less than one character")
	}
	name := "trim"
	if len(n.Args) == 3 {
		d, ok := n.Args[2].(*ast.TrimDirectionExpr)
		if !ok {
			return s, unsupported("this form of TRIM")
		}
		name = map[ast.TrimDirectionType]string{ast.TrimLeading: "ltrim", ast.TrimTrailing: "rtrim"}[d.Direction]
		if name == "" {
			name = "trim"
		}
	}
	return textResult(fmt.Sprintf("%s(%s, %s)", name, s.sql, quoteText(what)), s.typ.Length, c, args[0]), nil
}

func fnReverse(t *translator, e *env, args []expr) (expr, error) {
	s, c, err := t.oneText("reverse", args[0])
	if err == nil && !s.ascii {
		// DuckDB reverses grapheme clusters, MySQL characters.
		return textResult(fmt.Sprintf("array_to_string(list_reverse(regexp_extract_all(%s, '(?s).')), '')", s.sql), s.typ.Length, c, args...), nil
	}
	return textResult("reverse("+s.sql+")", s.typ.Length, c, args...), err
}

// fnReplace: REPLACE compares bytewise under every collation.
func fnReplace(t *translator, e *env, args []expr) (expr, error) {
	ts, c, err := t.allTexts("replace", args)
	if err != nil {
		return expr{}, err
	}
	length := ts[0].typ.Length * max(ts[2].typ.Length, 1)
	return textResult(fmt.Sprintf("replace(%s, %s, %s)", ts[0].sql, ts[1].sql, ts[2].sql), length, c, args...), nil
}

// fnLocate finds text by collation; only bytewise ones are translated.
func fnLocate(t *translator, e *env, args []expr) (expr, error) {
	if len(args) == 3 {
		return expr{}, unsupported("LOCATE with a position")
	}
	return t.locate(args[1], args[0])
}

func fnInstr(t *translator, e *env, args []expr) (expr, error) { return t.locate(args[0], args[1]) }

func (t *translator) locate(in, what expr) (expr, error) {
	if in.typ.isText() && what.typ.isText() && what.lit == nil && in.typ.Collation.Name != what.typ.Collation.Name {
		return expr{}, unsupported("LOCATE and INSTR over text of different collations")
	}
	ts, c, err := t.allTexts("locate", []expr{in, what})
	if err != nil {
		return expr{}, err
	}
	if !c.coll.Binary {
		if !ts[0].ascii || !ts[1].ascii || !c.coll.known {
			return expr{}, unsupported("LOCATE and INSTR by collation %s", c.coll.Name)
		}
		return bigintResult(fmt.Sprintf("instr(lower(%s), lower(%s))", ts[0].sql, ts[1].sql), 11, in, what), nil
	}
	return bigintResult(fmt.Sprintf("instr(%s, %s)", ts[0].sql, ts[1].sql), 11, in, what), nil
}

func fnHex(t *translator, e *env, args []expr) (expr, error) {
	x := args[0]
	c := collated{coll: t.effective(collationByName(t.session.Collation)), coer: Coercible, ascii: true}
	if x.typ.Kind == KindString && !x.typ.isBit() {
		b, err := x.bytes()
		return textResult("hex("+b+")", x.typ.Length*8, c, args...), err
	}
	if x.typ.Kind == KindDouble || x.typ.temporal() {
		return x, unsupported("HEX over this type")
	}
	b, err := t.bits(x)
	return textResult("hex("+b+")", 16, c, args...), err
}

func fnASCII(t *translator, e *env, args []expr) (expr, error) {
	if args[0].typ.isBit() {
		return expr{}, unsupported("ASCII over BIT")
	}
	s := t.text(args[0])
	b, err := s.bytes()
	if err != nil {
		return s, err
	}
	return bigintResult(fmt.Sprintf("(CASE WHEN %[1]s = '' THEN 0 ELSE CAST('0x' || left(hex(%[2]s), 2) AS BIGINT) END)", s.sql, b), 3, args...), nil
}

// fnPad: a length below zero gives NULL, a text longer than the length is cut.
func fnPad(name string) builder {
	return func(t *translator, e *env, args []expr) (expr, error) {
		ts, c, err := t.allTexts(name, []expr{args[0], args[2]})
		if err != nil {
			return expr{}, err
		}
		if args[1].lit == nil || args[1].lit.Kind != IntValue || args[1].lit.Int > 1<<16 {
			return expr{}, unsupported("%s to a length that is no small constant", strings.ToUpper(name))
		}
		n := args[1].lit.Int
		out := textResult("", int(max(n, 0)), c, args...)
		out.typ.Nullable = true
		switch l := args[2].lit; {
		case n < 0:
			out.sql = "CAST(NULL AS VARCHAR)"
		case l == nil || l.Kind == TextValue && l.Text == "":
			return expr{}, unsupported("%s with an empty text or one that is no constant", strings.ToUpper(name))
		default:
			out.sql = fmt.Sprintf("%s(%s, %d, %s)", name, ts[0].sql, n, ts[1].sql)
		}
		return out, nil
	}
}

func fnRepeat(t *translator, e *env, args []expr) (expr, error) {
	s, c, err := t.oneText("repeat", args[0])
	if err != nil {
		return s, err
	}
	if args[1].lit == nil || args[1].lit.Kind != IntValue || args[1].lit.Int > 1<<16 {
		return s, unsupported("REPEAT with a count that is no small constant")
	}
	n := max(args[1].lit.Int, 0)
	return textResult(fmt.Sprintf("repeat(%s, %d)", s.sql, n), s.typ.Length*int(n), c, args...), nil
}

func fnSpace(t *translator, e *env, args []expr) (expr, error) {
	blank := t.textLiteral(" ")
	return fnRepeat(t, e, []expr{blank, args[0]})
}

func fnHash(name string, length int) builder {
	return func(t *translator, e *env, args []expr) (expr, error) {
		s := t.text(args[0])
		b, err := s.bytes()
		c := collated{coll: t.effective(collationByName(t.session.Collation)), coer: Coercible, ascii: true}
		return textResult(fmt.Sprintf("%s(%s)", name, b), length, c, args...), err
	}
}

func fnStrcmp(t *translator, e *env, args []expr) (expr, error) {
	if args[0].typ.Kind != KindString || args[1].typ.Kind != KindString {
		return expr{}, unsupported("STRCMP over values that are no text")
	}
	lt, err := t.compareText("<", t.text(args[0]), t.text(args[1]))
	if err != nil {
		return lt, err
	}
	eq, err := t.compareText("=", t.text(args[0]), t.text(args[1]))
	return bigintResult(fmt.Sprintf("(CASE WHEN %s THEN 0 WHEN %s THEN -1 WHEN %s IS NOT NULL THEN 1 END)", eq.sql, lt.sql, lt.sql), 2, args...), err
}
