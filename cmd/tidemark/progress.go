package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/tidemarkdb/tidemark/replica"
)

// progress shows how far a copy is: a bar on a terminal, else a line now and then.
type progress struct {
	out      io.Writer
	terminal bool
	last     time.Time
	shown    bool
}

// plainEvery is the pause between lines where there is no terminal.
const plainEvery = 5 * time.Second

func newProgress(out io.Writer) *progress { return &progress{out: out, terminal: isTerminal(out)} }

func (p *progress) show(st *replica.Status) {
	if st.Copy == nil && st.Error == nil {
		return
	}
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", p.line(st))
		p.shown = true
		return
	}
	if now := time.Now(); now.Sub(p.last) >= plainEvery {
		p.last = now
		fmt.Fprintln(p.out, copyText(st))
	}
}

// note shows a line of text in place of the bar.
func (p *progress) note(text string) {
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", text)
		p.shown = true
		return
	}
	if now := time.Now(); now.Sub(p.last) >= plainEvery {
		p.last = now
		fmt.Fprintln(p.out, text)
	}
}

// end leaves the bar's line.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

func copyText(st *replica.Status) string {
	if st.Error != nil {
		return fmt.Sprintf("%s: %s", st.Name, *st.Error)
	}
	c := st.Copy
	if c.Converging {
		return st.Name + ": " + c.Text()
	}
	if c.TotalRows == 0 {
		return st.Name + ": the copy begins"
	}
	text := fmt.Sprintf("%s: %d of about %d rows (%d %%), %d of %d tables%s", st.Name, c.Rows, c.TotalRows, percent(c), c.Tables, c.TotalTables, pace(c.RowsPerSecond, c.LeftSeconds))
	if c.Resumed {
		text += fmt.Sprintf("; resumed behind %d rows", c.RowsTakenOver)
	}
	if c.Slowed != "" {
		text += "; slower for the source: " + c.Slowed
	}
	return text
}

// pace is how fast rows come and how long it will still take, as far as that is known.
func pace(rowsPerSecond float64, left *float64) string {
	text := ""
	if rowsPerSecond > 0 {
		text = fmt.Sprintf(", %.0f rows/s", rowsPerSecond)
	}
	if left != nil && *left > 0 {
		text += fmt.Sprintf(", %v left", time.Duration(*left*float64(time.Second)).Round(time.Second))
	}
	return text
}

const barWidth = 24

func bar(percent int) string {
	full := percent * barWidth / 100
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "]"
}

// line is the bar with the words, cut at the width of the terminal.
func (p *progress) line(st *replica.Status) string {
	text := copyText(st)
	if st.Copy != nil && st.Error == nil {
		text = bar(percent(st.Copy)) + " " + text
	}
	if f, ok := p.out.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && len(text) >= width && width > 0 {
			text = text[:width-1]
		}
	}
	return text
}
