package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseColumnType reads a COLUMN_TYPE of information_schema.COLUMNS, such as "decimal(10,2) unsigned" or
// "enum('a','b')", into the fields of a Column that follow from it: Type, Unsigned, Zerofill, Length, Precision,
// Scale, FSP, Elements and ColumnType itself. The copy and the DDL of the stream both come through here, so that a
// column is described alike on both ways. A type of an unknown name is Invalid, which is not an error here.
func ParseColumnType(text string) (Column, error) {
	c := Column{ColumnType: text}
	name, arguments, attributes, err := splitColumnType(text)
	if err != nil {
		return c, err
	}
	c.Type, _ = ParseType(name)
	c.Unsigned = strings.Contains(attributes, " unsigned")
	c.Zerofill = strings.Contains(attributes, " zerofill")
	if c.Type == Enum || c.Type == Set {
		c.Elements, err = parseLabels(arguments)
		return c, err
	}
	numbers, err := parseNumbers(arguments)
	if err != nil {
		return c, fmt.Errorf("column type %q: %w", text, err)
	}
	c.setNumbers(numbers)
	return c, nil
}

// splitColumnType cuts a type into its name, what stands in the parentheses, and the rest.
func splitColumnType(text string) (name, arguments, attributes string, err error) {
	open := strings.IndexByte(text, '(')
	if open < 0 {
		name, attributes, _ = strings.Cut(text, " ")
		return name, "", " " + attributes, nil
	}
	end := strings.LastIndexByte(text, ')')
	if end < open {
		return "", "", "", fmt.Errorf("column type %q has no closing parenthesis", text)
	}
	return text[:open], text[open+1 : end], text[end+1:], nil
}

func parseNumbers(arguments string) ([]int, error) {
	if arguments == "" {
		return nil, nil
	}
	var out []int
	for f := range strings.SplitSeq(arguments, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// Lengths that MySQL gives FLOAT and DOUBLE columns declared without one, with ZEROFILL.
const (
	floatLength  = 12
	doubleLength = 22
)

func (c *Column) setNumbers(n []int) {
	at := func(i, missing int) int {
		if i < len(n) {
			return n[i]
		}
		return missing
	}
	switch c.Type {
	case Decimal:
		c.Precision, c.Scale = at(0, 10), at(1, 0)
	case Float, Double:
		c.Length, c.Precision, c.Scale = at(0, 0), at(0, 0), at(1, FloatUnscaled)
		if c.Length == 0 && c.Zerofill {
			c.Length = map[Type]int{Float: floatLength, Double: doubleLength}[c.Type]
		}
	case DateTime, Timestamp, Time:
		c.FSP = at(0, 0)
	case Char, Binary, Bit:
		c.Length = at(0, 1)
	default:
		c.Length = at(0, 0)
	}
}

// parseLabels reads 'a','b' and so on. Servers escape \0, \n, \r and \\ in labels, and double the quote; a tab stands as it is.
func parseLabels(s string) ([]string, error) {
	var out []string
	for {
		if len(s) == 0 || s[0] != '\'' {
			return nil, fmt.Errorf("labels %q are not a list of quoted strings", s)
		}
		label, rest, err := parseLabel(s[1:])
		if err != nil {
			return nil, err
		}
		out = append(out, label)
		if rest == "" {
			return out, nil
		}
		if rest[0] != ',' {
			return nil, fmt.Errorf("labels are not separated by commas at %q", rest)
		}
		s = rest[1:]
	}
}

// parseLabel reads up to the closing quote.
func parseLabel(s string) (label, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(unescapeLabel(s[i]))
		case s[i] != '\'':
			b.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == '\'':
			i++
			b.WriteByte('\'')
		default:
			return b.String(), s[i+1:], nil
		}
	}
	return "", "", fmt.Errorf("label %q has no closing quote", s)
}

func unescapeLabel(c byte) byte {
	switch c {
	case '0':
		return 0
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	default:
		return c
	}
}

// QuoteLabel gives a label as COLUMN_TYPE prints it.
func QuoteLabel(label string) string {
	r := strings.NewReplacer("'", "''", `\`, `\\`, "\x00", `\0`, "\n", `\n`, "\r", `\r`)
	return "'" + r.Replace(label) + "'"
}
