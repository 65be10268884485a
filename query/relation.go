package query

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/query/engine"
	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/schema"
)

// relation makes a definition and a segment of rows in memory.
func relation(database, name string, t *result.Table) (*schema.Table, []engine.Segment, error) {
	def := definitionOf(database, name, t.Fields())
	b := column.NewBuilder(memory.DefaultAllocator, def)
	for _, row := range t.Rows() {
		for i, cell := range row {
			if cell.Null {
				b.Column(i).Null()
			} else if err := column.AppendText(b.Column(i), &def.Columns[i], cell.Text); err != nil {
				return nil, nil, err
			}
		}
		b.EndRow()
	}
	if len(t.Rows()) == 0 {
		return def, nil, nil
	}
	batch, err := b.Finish()
	if err != nil {
		return nil, nil, err
	}
	exact, err := batch.ExactColumns()
	if err != nil {
		return nil, nil, err
	}
	return def, []engine.Segment{{Record: batch.Record, Exact: batch.Exact, ExactColumns: exact}}, nil
}

// columnOf gives the column that a field describes. The collations are those of MySQL's own information_schema.
func columnOf(f *field.Field) schema.Column {
	c := schema.Column{Name: f.Name, Nullable: f.Flags&field.NotNull == 0}
	switch f.Type {
	case field.LongLong:
		c.Type, c.Unsigned, c.ColumnType = schema.BigInt, f.Flags&field.Unsigned != 0, "bigint"
		if c.Unsigned {
			c.ColumnType = "bigint unsigned"
		}
	case field.DateTime:
		c.Type, c.FSP, c.ColumnType = schema.DateTime, int(f.Decimals), "datetime"
	case field.Double:
		c.Type, c.Scale, c.ColumnType = schema.Double, schema.FloatUnscaled, "double"
	default:
		c.Charset, c.Collation = "utf8mb3", "utf8mb3_general_ci"
		if f.Charset == field.UTF8MB3Bin {
			c.Collation = "utf8mb3_bin"
		}
		if f.Type == field.Blob {
			c.Type, c.ColumnType = schema.LongText, "longtext"
			break
		}
		c.Type, c.Length = schema.VarChar, int(f.Length/utf8mb4Bytes)
		c.ColumnType = fmt.Sprintf("varchar(%d)", c.Length)
	}
	return c
}

const utf8mb4Bytes = 4
