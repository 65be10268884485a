package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// reports makes random statements of the kind that reports are made of: joins, conditions, groups, subqueries.
type reports struct{ r *rand.Rand }

func (g reports) one(of ...string) string { return of[g.r.IntN(len(of))] }

func (g reports) some(most int, of ...string) []string {
	g.r.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	return of[:g.r.IntN(most+1)]
}

const shopJoin = "orders o JOIN customers c ON c.id = o.customer_id JOIN order_items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id"

func (g reports) condition() string {
	n := func(limit int) string { return fmt.Sprint(g.r.IntN(limit)) }
	return g.one(
		"o.total > "+n(9000), "o.total BETWEEN "+n(4000)+" AND "+n(9000), "o.status = '"+g.one("paid", "PLACED", "shipped", "lost")+"'",
		"o.status IN ('paid', 'returned')", "o.placed >= '2024-0"+g.one("1", "2", "4", "6")+"-1"+n(9)+"'", "MONTH(o.placed) = "+n(7),
		"c.country = '"+g.one("DE", "fr", "US")+"'", "c.name LIKE '"+g.one("a%", "%n%", "_o%", "%é%")+"'", "c.segment <> 'public'", "c.birthday < '1980-06-01'",
		"p.category IN ('books', 'Toys')", "p.price * 2 > "+n(1500), "p.weight < "+n(9)+".5", "p.labels LIKE '%sale%'", "i.quantity % 3 = "+n(3), "o.note IS NULL",
		"o.note = 'URGENT'", "NOT (o.id < "+n(120)+")", "i.price / i.quantity > "+n(300), "o.customer_id NOT IN (SELECT id FROM customers WHERE id % 4 = "+n(4)+")",
		"EXISTS (SELECT 1 FROM order_items x WHERE x.order_id = o.id AND x.quantity > "+n(9)+")", "o.total > (SELECT AVG(total) FROM orders WHERE status = o.status)",
		"(o.id = "+n(120)+" OR p.stock > "+n(500)+")", "DATEDIFF(o.placed, '2024-01-01') < "+n(170), "c.registered + INTERVAL "+n(9)+" MONTH < o.placed",
	)
}

func (g reports) where() string {
	var conds []string
	for range g.r.IntN(4) {
		conds = append(conds, g.condition())
	}
	if len(conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conds, g.one(" AND ", " AND ", " OR "))
}

func (g reports) keys() []string {
	return g.some(3, "o.status", "c.segment", "UPPER(c.country)", "YEAR(o.placed)", "DATE_FORMAT(o.placed, '%Y-%m')", "o.customer_id % 5", "p.category", "i.quantity",
		"o.total > 5000", "CASE WHEN p.price > 500 THEN 'high' ELSE 'low' END", "WEEKDAY(o.placed)", "p.labels", "LEFT(c.name, 1) = 'A'", "ROUND(o.total / 1000)")
}

func (g reports) aggregates() []string {
	a := g.some(4, "COUNT(*)", "COUNT(o.note)", "COUNT(DISTINCT o.id)", "COUNT(DISTINCT c.country)", "SUM(i.quantity)", "SUM(i.quantity * i.price)", "AVG(o.total)", "AVG(i.quantity)",
		"MIN(o.placed)", "MAX(o.total)", "MIN(p.title)", "SUM(i.price) / COUNT(*)", "SUM(CASE WHEN o.status = 'paid' THEN i.price ELSE 0 END)", "MAX(c.birthday)", "BIT_OR(i.line)",
		"SUM(o.total > 1000)", "COUNT(*) * 1.5", "AVG(o.total) - MIN(o.total)", "ROUND(AVG(p.price), 2)", "SUM(p.weight) > 10", "MAX(p.labels)", "GROUP_CONCAT(DISTINCT i.quantity ORDER BY i.quantity)")
	return append(a, "COUNT(*) n")
}

func (g reports) statement() string {
	switch g.r.IntN(5) {
	case 0:
		cols := append(g.some(4, "o.id", "o.total", "c.name", "c.email", "p.title", "i.line", "o.placed", "o.note", "p.price * i.quantity", "p.labels", "c.registered", "YEAR(c.birthday)"), "o.status")
		return "SELECT " + strings.Join(cols, ", ") + " FROM " + shopJoin + g.where()
	case 1:
		return "SELECT DISTINCT " + strings.Join(append(g.keys(), "o.status"), ", ") + " FROM " + shopJoin + g.where()
	case 2:
		return "SELECT " + strings.Join(g.aggregates(), ", ") + " FROM " + shopJoin + g.where()
	}
	keys := g.keys()
	if len(keys) == 0 {
		keys = []string{"o.status"}
	}
	sql := "SELECT " + strings.Join(append(append([]string{}, keys...), g.aggregates()...), ", ") + " FROM " + shopJoin + g.where() + " GROUP BY " + strings.Join(keys, ", ")
	if g.r.IntN(4) == 0 {
		sql += " WITH ROLLUP"
	} else if g.r.IntN(3) == 0 {
		sql += " HAVING " + g.one("n > 3", "COUNT(*) BETWEEN 2 AND 20", "SUM(i.quantity) > 10", "MAX(o.total) > AVG(o.total)")
	}
	if g.r.IntN(4) == 0 {
		sql = "SELECT COUNT(*), SUM(n) FROM (" + sql + ") x"
	}
	return sql
}

// TestReports compares random reports. TIDEMARK_RANDOM is the number of statements, TIDEMARK_SEED the seed.
func TestReports(t *testing.T) {
	count, seed := numberIn("TIDEMARK_RANDOM", 200), numberIn("TIDEMARK_SEED", 1)
	t.Logf("seed %d", seed)
	b := open(t)
	g := reports{rand.New(rand.NewPCG(uint64(seed), 1))}
	b.compareRandom(count, g.statement)
}
