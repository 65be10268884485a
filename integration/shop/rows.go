package shop

import (
	"fmt"
	"math/rand/v2"
	"time"
)

var (
	firstNames = []string{"Ada", "Björn", "Chloé", "Dmitri", "Emil", "Fatima", "Grace", "Håkon", "Inés", "Jürgen", "Kenji", "Łucja", "Mei", "Noël", "Olu", "Priya", "Quentin", "Rosa", "Søren", "Tomás", "Ülkü", "Vera", "Wanda", "Xiao", "Yusuf", "Zoë"}
	lastNames  = []string{"Anders", "Brontë", "Castillo", "Dvořák", "Eriksen", "Fontaine", "García", "Hopper", "Ivanova", "Jónsson", "Kowalski", "Lovelace", "Müller", "Nakamura", "O'Brien", "Papadopoulos", "Quispe", "Rossi", "Sørensen", "Tanaka", "Uğur", "Vermeer", "Weiß", "Xu", "Yılmaz", "Zieliński"}
	countries  = []string{"AR", "BR", "CH", "DE", "ES", "FI", "FR", "GB", "IN", "IT", "JP", "NL", "NO", "PL", "SE", "TR", "US"}
	categories = []string{"Books", "Bicycles", "Coffee & Tea", "Furniture", "Games", "Garden", "Kitchen", "Lighting", "Music", "Shoes", "Tools", "Toys"}
	adjectives = []string{"blue", "compact", "curved", "fine", "folding", "heavy", "light", "old-fashioned", "quiet", "red", "small", "solid"}
	things     = []string{"atlas", "bell", "chair", "drill", "grinder", "kettle", "lamp", "novel", "pedal", "puzzle", "shelf", "teapot"}
	notes      = []string{"please ring twice", "gift wrap 🎁", "leave it with the neighbour", "fragile!", "invoice to the company", "çok teşekkürler"}
	segments   = []string{"consumer", "consumer", "consumer", "business", "public"}
	statuses   = []string{"shipped", "shipped", "shipped", "paid", "placed", "returned"}
	labelSets  = []string{"", "new", "sale", "new,sale", "bulky", "fragile", "sale,bulky,fragile"}
)

// opened is when the shop opened; all generated times lie in the three years after it.
var opened = time.Date(2023, time.March, 1, 8, 0, 0, 0, time.UTC)

// generator makes rows, each as the text of a VALUES list. None of its texts needs escaping but for the quote.
type generator struct {
	random *rand.Rand
	size   Size
}

func (g *generator) pick(from []string) string { return from[g.random.IntN(len(from))] }

// one returns true once in n times.
func (g *generator) one(n int) bool { return g.random.IntN(n) == 0 }

func (g *generator) time() time.Time {
	return opened.Add(time.Duration(g.random.Int64N(int64(3 * 365 * 24 * time.Hour))))
}

// nullOr is NULL once in n times, else the text as a literal.
func (g *generator) nullOr(n int, text string) string {
	if g.one(n) {
		return "NULL"
	}
	return quote(text)
}

func quote(text string) string {
	quoted := make([]byte, 0, len(text)+2)
	quoted = append(quoted, '\'')
	for i := range len(text) {
		if text[i] == '\'' {
			quoted = append(quoted, '\'')
		}
		quoted = append(quoted, text[i])
	}
	return string(append(quoted, '\''))
}

// cents prints an amount of money.
func cents(n int) string { return fmt.Sprintf("%d.%02d", n/100, n%100) }

func (g *generator) customer(i int) string {
	birthday := opened.AddDate(-18-g.random.IntN(60), 0, g.random.IntN(365)).Format(time.DateOnly)
	preferences := fmt.Sprintf(`{"newsletter": %t, "language": "%s", "seen": %d}`, g.one(2), g.pick([]string{"en", "de", "ja", "pt"}), g.random.IntN(500))
	return fmt.Sprintf("(%d,%s,'customer%d@example.com','%s','%s',%s,'%s',%s)",
		i+1, quote(g.pick(firstNames)+" "+g.pick(lastNames)), i+1, g.pick(countries), g.pick(segments),
		g.nullOr(10, birthday), g.time().Format("2006-01-02 15:04:05.000"), g.nullOr(5, preferences))
}

func (g *generator) product(i int) string {
	weight := "NULL"
	if !g.one(8) {
		weight = fmt.Sprint(g.random.Float64() * 40)
	}
	return fmt.Sprintf("(%d,'SKU-%08d',%s,%s,%s,%s,'%s',%d)",
		i+1, i+1, quote(g.pick(adjectives)+" "+g.pick(things)), quote(g.pick(categories)),
		cents(99+g.random.IntN(50000)), weight, g.pick(labelSets), 1000+g.random.IntN(9000))
}

func (g *generator) order(i int) string {
	return fmt.Sprintf("(%d,%d,'%s','%s',%s,%s)",
		i+1, 1+g.random.IntN(g.size.Customers), g.pick(statuses), g.time().Format("2006-01-02 15:04:05.000000"),
		cents(500+g.random.IntN(200000)), g.nullOrNote())
}

// nullOrNote: most orders come without a note.
func (g *generator) nullOrNote() string {
	if g.one(10) {
		return quote(g.pick(notes))
	}
	return "NULL"
}

// item spreads the items over the orders in turn, so that (order, line) never repeats.
func (g *generator) item(i int) string {
	return fmt.Sprintf("(%d,%d,%d,%d,%s)",
		i%g.size.Orders+1, i/g.size.Orders+1, 1+g.random.IntN(g.size.Products), 1+g.random.IntN(5), cents(99+g.random.IntN(50000)))
}
