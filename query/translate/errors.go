package translate

import (
	"fmt"

	"github.com/tidemarkdb/tidemark/query/sqlerr"
)

// Unsupported names a construct that Tidemark does not answer (yet), so that it is refused and never answered
// differently from MySQL. The server sends it as error 1235 (42000).
type Unsupported struct {
	// Construct is what MySQL users call it, such as "LATERAL" or "function SOUNDEX".
	Construct string
	// Position is the byte offset in the statement's text; -1 where it is not known.
	Position int
}

func (e *Unsupported) Error() string {
	return fmt.Sprintf("This version of Tidemark doesn't yet support '%s'", e.Construct)
}

func unsupported(format string, args ...any) error {
	return &Unsupported{Construct: fmt.Sprintf(format, args...), Position: -1}
}

// errorf makes an error that MySQL itself gives, with its number, SQLSTATE and text.
func errorf(number uint16, state, format string, args ...any) error {
	return &sqlerr.Error{Code: number, State: state, Message: fmt.Sprintf(format, args...)}
}

// The errors below are MySQL's, by the names of its manual.

func errNoDatabase() error { return errorf(1046, "3D000", "No database selected") }

func errBadTable(name string) error { return errorf(1051, "42S02", "Unknown table '%s'", name) }

func errAmbiguous(column, clause string) error {
	return errorf(1052, "23000", "Column '%s' in %s is ambiguous", column, clause)
}

func errBadField(column, clause string) error {
	return errorf(1054, "42S22", "Unknown column '%s' in '%s'", column, clause)
}

func errWrongFieldWithGroup(pos int, clause, column string) error {
	return errorf(1055, "42000", "Expression #%d of %s is not in GROUP BY clause and contains nonaggregated column '%s' "+
		"which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by",
		pos, clause, column)
}

func errWrongGroupField(name string) error {
	return errorf(1056, "42000", "Can't group on '%s'", name)
}

func errNonUniqTable(name string) error {
	return errorf(1066, "42000", "Not unique table/alias: '%s'", name)
}

func errInvalidGroupFunc() error { return errorf(1111, "HY000", "Invalid use of group function") }

func errMixOfGroupFields(pos int, clause, column string) error {
	return errorf(1140, "42000", "In aggregated query without GROUP BY, expression #%d of %s contains nonaggregated column "+
		"'%s'; this is incompatible with sql_mode=only_full_group_by", pos, clause, column)
}

func errNoSuchTable(db, name string) error {
	return errorf(1146, "42S02", "Table '%s.%s' doesn't exist", db, name)
}

func errWrongColumnCountInSelect() error {
	return errorf(1222, "21000", "The used SELECT statements have a different number of columns")
}

func errOperandColumns(n int) error {
	return errorf(1241, "21000", "Operand should contain %d column(s)", n)
}

func errDerivedNeedsAlias() error {
	return errorf(1248, "42000", "Every derived table must have its own alias")
}

func errMixCollations(a, b expr, op string) error {
	return errorf(1267, "HY000", "Illegal mix of collations (%s,%s) and (%s,%s) for operation '%s'",
		a.typ.Collation.Name, a.typ.Coercibility, b.typ.Collation.Name, b.typ.Coercibility, op)
}

func errCollationCharset(collation, charset string) error {
	return errorf(1253, "42000", "COLLATION '%s' is not valid for CHARACTER SET '%s'", collation, charset)
}

func errNoFunction(db, name string) error {
	return errorf(1305, "42000", "FUNCTION %s.%s does not exist", db, name)
}

func errWrongValue(kind, value string) error {
	return errorf(1525, "HY000", "Incorrect %s value: '%s'", kind, value)
}

func errWrongParamCount(name string) error {
	return errorf(1582, "42000", "Incorrect parameter count in the call to native function '%s'", name)
}
