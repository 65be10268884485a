package schema

import "strings"

// ImplicitDefault is what a NOT NULL column without DEFAULT gives to rows without a value for it: those that are there
// when it is added, and those that are inserted without strict mode (manual, "Data Type Default Values"). It is in
// MySQL's text form; binary types are the bytes themselves.
func (c *Column) ImplicitDefault() string {
	switch c.Type {
	case Date:
		return "0000-00-00"
	case DateTime, Timestamp:
		return "0000-00-00 00:00:00"
	case Time:
		return "00:00:00"
	case Enum:
		return c.Elements[0]
	case JSON:
		return "null"
	}
	if c.Type.IsText() || c.Type.IsBinary() || c.Type == Set {
		if c.Type == Binary {
			return strings.Repeat("\x00", c.Length)
		}
		return ""
	}
	return "0"
}

// InsertDefault is what a row has in the column if it was inserted without a value for it, in MySQL's text form; nil is
// NULL. known is false where the definition does not say it: values that are computed for each row, and what
// information_schema does not print in full (binary defaults end at their first zero byte, those of TIMESTAMP are in the
// time zone of whoever declared them).
func (c *Column) InsertDefault() (text *string, known bool) {
	switch {
	case c.Generated != "" || c.DefaultExpr || c.AutoIncrement:
		return nil, false
	case c.Default == nil && c.Nullable:
		return nil, true
	case c.Default == nil && (c.Type == JSON || c.Type == Geometry || c.Type == Vector):
		return nil, false
	case c.Default == nil:
		implicit := c.ImplicitDefault()
		return &implicit, true
	case c.Type == Timestamp:
		return c.Default, strings.HasPrefix(*c.Default, "0000-00-00")
	case c.Type.IsBinary():
		return c.Default, *c.Default == "" || len(*c.Default) == len("0x")+2*c.Length
	}
	return c.Default, true
}
