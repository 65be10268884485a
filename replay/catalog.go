package replay

import (
	"maps"
	"slices"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay/ddl"
	"github.com/tidemarkdb/tidemark/schema"
)

// Table is a followed table at some point.
type Table struct {
	// Def is its definition; without columns when nothing is known of it (a quarantined table that came by a statement
	// which does not say what is in it).
	Def *schema.Table
	// Live tells that changes are applied; otherwise the table is quarantined.
	Live bool
	// Window is not nil while the table does not stand at the State's point, nor at any other.
	Window *Window
}

// State is what is committed. It is a value: what it refers to is never changed.
type State struct {
	Point gtid.Point
	// Last is the last transaction in it.
	Last gtid.Identity
	// Charset and Collation are the database's defaults on the source, empty after it was dropped there.
	Charset, Collation string
	Tables             map[string]Table
	// Rows counts the row changes applied since the copy.
	Rows uint64

	// edge is the first end of a window of a live table, until the last one of any; zero: there is none. See measure.
	edge, until gtid.Position
}

// Filter says which tables of the database are followed, by name.
type Filter func(table string) bool

// catalog is a State that is being changed. It is what package ddl asks.
type catalog struct {
	State
	database string
	filter   Filter
	shared   bool // Tables belongs to somebody else, too
}

var _ ddl.Catalog = (*catalog)(nil)

func (c *catalog) Database() string          { return c.database }
func (c *catalog) Charset() (string, string) { return c.State.Charset, c.State.Collation }
func (c *catalog) Follows(table string) bool { return c.filter(table) }
func (c *catalog) Tables() []string          { return slices.Sorted(maps.Keys(c.State.Tables)) }

func (c *catalog) Table(name string) (def *schema.Table, live, ok bool) {
	t, ok := c.State.Tables[name]
	return t.Def, t.Live, ok
}

// own makes the map of tables one that may be changed.
func (c *catalog) own() {
	if c.shared {
		c.State.Tables, c.shared = maps.Clone(c.State.Tables), false
	}
	if c.State.Tables == nil {
		c.State.Tables = map[string]Table{}
	}
}

func (c *catalog) set(name string, t Table) {
	c.own()
	c.State.Tables[name] = t
	c.remeasure()
}

func (c *catalog) remove(name string) {
	c.own()
	delete(c.State.Tables, name)
	c.remeasure()
}

// remeasure keeps edge and until up to date. Windows come with a State only, and go one by one.
func (c *catalog) remeasure() {
	if !c.State.until.IsZero() {
		c.State.measure()
	}
}
