package translate

import (
	"fmt"

	"github.com/pingcap/tidb/pkg/parser/mysql"
)

// merged is the type in which branches of IF, CASE, COALESCE and UNION meet.
func (t *translator) merged(op string, xs []expr) (Type, phys, error) {
	kind, nullable := KindNull, false
	for i := range xs {
		if xs[i].typ.isBit() {
			return Type{}, phys{}, unsupported("BIT as a branch of %s", op)
		}
		kind = mergeKinds(kind, xs[i].typ.Kind)
		nullable = nullable || xs[i].typ.Nullable
	}
	var ty Type
	var p phys
	var err error
	switch kind {
	case KindNull:
		ty, p = nullExpr().typ, phys{k: physNull}
	case KindInt, KindDecimal:
		ty, p, err = mergeExact(xs, kind)
	case KindDouble:
		ty, p, err = mergeDoubles(xs)
	case KindDate:
		ty, p = dateType(), phys{k: physDate}
	case KindDateTime:
		ty, p, err = mergeDateTimes(xs)
	case KindTime:
		ty, p = timeType(maxScale(xs)), phys{k: physMicros}
	case KindJSON:
		ty, p = xs[0].typ, phys{k: physText}
		err = unsupported("JSON values as branches of %s", op)
	default:
		ty, p, err = t.mergeStrings(op, xs)
	}
	ty.Nullable = nullable
	return ty, p, err
}

func mergeKinds(a, b Kind) Kind {
	switch {
	case a == KindNull || a == b:
		return b
	case b == KindNull:
		return a
	case numericKind(a) && numericKind(b):
		return max(a, b)
	case a == KindDate && b == KindDateTime || a == KindDateTime && b == KindDate:
		return KindDateTime
	case dateKind(a) && b == KindTime || a == KindTime && dateKind(b):
		return KindDateTime
	}
	return KindString
}

func numericKind(k Kind) bool { return k == KindInt || k == KindDecimal || k == KindDouble }
func dateKind(k Kind) bool    { return k == KindDate || k == KindDateTime }

// mergeExact: integers of one signedness stay integers; signed with unsigned ones of the same width grow, beyond BIGINT
// to DECIMAL.
func mergeExact(xs []expr, kind Kind) (Type, phys, error) {
	digits, scale, allUnsigned := 0, 0, true
	for i := range xs {
		ty := &xs[i].typ
		if ty.Kind == KindNull {
			continue
		}
		if xs[i].phys.k == physDecimalText {
			return Type{}, phys{}, unsupported("DECIMAL values of more than %d digits as branches", maxDuckDecimal)
		}
		digits, scale = max(digits, ty.integerDigits()), max(scale, ty.Scale)
		allUnsigned = allUnsigned && ty.Unsigned && ty.Kind == kind
	}
	if kind == KindInt {
		field, grows := mergeIntFields(xs)
		if !grows {
			return mergedInt(xs, field, digits, allUnsigned)
		}
	}
	ty := decimalType(digits+scale, scale)
	ty.Unsigned = allUnsigned
	return ty, phys{k: physDecimal, p: min(digits+maxPhysScale(xs, scale), maxDuckDecimal), s: maxPhysScale(xs, scale)}, nil
}

func mergedInt(xs []expr, field byte, digits int, unsigned bool) (Type, phys, error) {
	ty := intType(digits + 1)
	ty.Field, ty.Unsigned, ty.Precision = field, unsigned, digits
	for i := range xs {
		ty.Length = max(ty.Length, xs[i].typ.Length)
	}
	for i := range xs {
		if xs[i].phys.k == physUint64 {
			return ty, phys{k: physUint64}, nil
		}
	}
	return ty, phys{k: physInt64}, nil
}

func (t *Type) integerDigits() int {
	if t.Kind == KindInt {
		return t.Precision
	}
	return t.Precision - t.Scale
}

var intFields = []byte{mysql.TypeTiny, mysql.TypeShort, mysql.TypeInt24, mysql.TypeLong, mysql.TypeLonglong}

func intRank(field byte) int {
	for i, f := range intFields {
		if f == field {
			return i
		}
	}
	if field == mysql.TypeYear {
		return 1 // as a SMALLINT
	}
	return len(intFields) - 1
}

// mergeIntFields gives the widest of the integer types. grows tells that signed and unsigned BIGINT meet.
func mergeIntFields(xs []expr) (field byte, grows bool) {
	rank, signed, unsigned := 0, false, -1
	allYears := true
	for i := range xs {
		ty := &xs[i].typ
		if ty.Kind == KindNull {
			continue
		}
		r := intRank(ty.Field)
		allYears = allYears && ty.isYear()
		rank = max(rank, r)
		if ty.Unsigned {
			unsigned = max(unsigned, r)
		} else {
			signed = true
		}
	}
	if allYears {
		return mysql.TypeYear, false
	}
	if signed && unsigned == rank {
		rank++
	}
	if rank == len(intFields) {
		return 0, true
	}
	return intFields[rank], false
}

func mergeDoubles(xs []expr) (Type, phys, error) {
	ty := doubleType()
	floats, others := 0, 0
	for i := range xs {
		switch k := &xs[i].typ; {
		case k.Field == mysql.TypeFloat:
			floats++
		case k.Kind != KindNull && k.Kind != KindDouble:
			others++
		case k.Kind == KindDouble:
			return ty, phys{k: physDouble}, nil
		}
	}
	if others > 0 {
		return ty, phys{}, unsupported("FLOAT mixed with integers or decimals")
	}
	ty.Field = mysql.TypeFloat
	return ty, phys{k: physFloat}, nil
}

func mergeDateTimes(xs []expr) (Type, phys, error) {
	for i := range xs {
		if xs[i].typ.Kind == KindTime {
			return Type{}, phys{}, unsupported("TIME mixed with DATE or DATETIME")
		}
	}
	ty := datetimeType(maxScale(xs))
	ty.Field = mysql.TypeTimestamp
	for i := range xs {
		if xs[i].typ.Kind != KindNull && xs[i].typ.Field != mysql.TypeTimestamp {
			ty.Field = mysql.TypeDatetime
		}
	}
	return ty, phys{k: physTimestamp}, nil
}

func maxScale(xs []expr) int {
	s := 0
	for i := range xs {
		if xs[i].typ.temporal() {
			s = max(s, xs[i].typ.Scale)
		}
	}
	return s
}

func maxPhysScale(xs []expr, scale int) int {
	for i := range xs {
		if xs[i].phys.k == physDecimal {
			scale = max(scale, xs[i].phys.s)
		}
	}
	return scale
}

// onlyMembers tells branches for which MySQL keeps the type ENUM or SET.
func onlyMembers(xs []expr) bool {
	for i := range xs {
		if ty := &xs[i].typ; ty.Kind != KindNull && !ty.isEnum() && !ty.isSet() {
			return false
		}
	}
	return true
}

func (t *translator) mergeStrings(op string, xs []expr) (Type, phys, error) {
	if onlyMembers(xs) && op != "UNION" {
		return Type{}, phys{}, unsupported("nothing but ENUM or SET values as branches of %s", op)
	}
	ts, c, err := t.texts("", xs...)
	if err != nil {
		return Type{}, phys{}, err
	}
	if op == "UNION" && c.coer == None {
		return Type{}, phys{}, errorf(1271, "HY000", "Illegal mix of collations for operation 'UNION'")
	}
	length, blob := 0, false
	for i := range ts {
		length = max(length, ts[i].typ.Length)
		blob = blob || xs[i].typ.Field == mysql.TypeBlob
	}
	if c.coll == nil {
		return Type{}, phys{}, unsupported("%s of these types", op)
	}
	ty := textType(length, c.coll, c.coer)
	if blob {
		ty.Field = mysql.TypeBlob
	}
	if c.coll == collationBinary {
		return ty, phys{k: physBlob}, nil
	}
	return ty, phys{k: physText}, nil
}

// as gives the text of x converted to a merged type.
func (t *translator) as(x expr, ty Type, p phys) (string, error) {
	switch ty.Kind {
	case KindNull:
		return "NULL", nil
	case KindString:
		if x.typ.Kind == KindNull {
			return fmt.Sprintf("CAST(NULL AS %s)", p), nil
		}
		return t.text(x).asCollation(ty.Collation)
	case KindDouble:
		if p.k == physFloat {
			return exactAs(x, p), nil
		}
		return t.double(x)
	case KindInt, KindDecimal:
		return exactAs(x, p), nil
	}
	if x.typ.Kind == KindNull {
		return fmt.Sprintf("CAST(NULL AS %s)", p), nil
	}
	if x.phys.k != p.k {
		return fmt.Sprintf("CAST(%s AS %s)", x.sql, p), nil
	}
	return x.sql, nil
}

func exactAs(x expr, p phys) string {
	if x.phys == p {
		return x.sql
	}
	return fmt.Sprintf("CAST(%s AS %s)", x.sql, p)
}
