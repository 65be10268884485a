package column

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/schema"
)

// Columns of new rows come from different rows, with their exact values, and texts can be exchanged.
func TestCompose(t *testing.T) {
	def := table(id, schema.Column{Type: schema.Date, Nullable: true}, schema.Column{Type: schema.JSON, Nullable: true})
	build := func(rows ...[3]any) *Batch {
		b := NewBuilder(memory.DefaultAllocator, def)
		for _, r := range rows {
			b.Column(0).Int(int64(r[0].(int)))
			b.Column(1).Date(2024, 2, r[1].(int))
			if r[2] == nil {
				b.Column(2).Null()
			} else {
				b.Column(2).JSON([]byte(r[2].(string)))
			}
			b.EndRow()
		}
		batch, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		return batch
	}
	one, two := build([3]any{1, 31, "[1]"}, [3]any{2, 2, nil}), build([3]any{3, 30, "{}"})
	var keys Keys
	keys.Append([]byte("k"))
	keys.Append([]byte("l"))
	got, err := Compose([]*Batch{one, two}, [][]int{{0, 2}, {2, 1}, {1, 0}}, keys)
	if err != nil {
		t.Fatal(err)
	}
	show := func(b *Batch) string {
		out := ""
		for i := range b.Rows() {
			for c := range def.Columns {
				text := "NULL"
				if a := b.Record.Column(c); a.IsValid(i) {
					text = string(Print(nil, &def.Columns[c], a, i, time.UTC))
				}
				if exact, ok := b.exactOf(i, def.Columns[c].ID); ok {
					text = string(exact)
				}
				out += text + " "
			}
			out += fmt.Sprintf("%s; ", b.Keys.At(i))
		}
		return out
	}
	if s := show(got); s != "1 2024-02-30 NULL k; 3 2024-02-02 [1] l; " {
		t.Error(s)
	}
	other := got.WithTexts(2, map[int][]byte{0: []byte("7"), 1: nil})
	if s := show(other); s != "1 2024-02-30 7 k; 3 2024-02-02 NULL l; " {
		t.Error(s)
	}
	if text, ok := other.Text(2, 0); !ok || text != "7" {
		t.Error(text, ok)
	}
	plain, err := Compose([]*Batch{one}, [][]int{{0}, {1}, {0}}, Keys{})
	if err != nil || plain.Exact != nil {
		t.Error(plain, err)
	}
}
