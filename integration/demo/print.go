package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
)

// printer writes the demo's lines. Progress overwrites itself on a terminal and is a line now and then elsewhere.
type printer struct {
	out      io.Writer
	terminal bool
	pending  bool // a progress line stands unfinished on the terminal
	last     time.Time
}

func newPrinter(out io.Writer) *printer {
	f, ok := out.(*os.File)
	return &printer{out: out, terminal: ok && term.IsTerminal(int(f.Fd()))}
}

func (p *printer) title(text string) {
	p.clear()
	fmt.Fprintf(p.out, "\n== %s\n", text)
}

func (p *printer) line(format string, args ...any) {
	p.clear()
	fmt.Fprintf(p.out, "   "+format+"\n", args...)
}

func (p *printer) progress(format string, args ...any) {
	if p.terminal {
		fmt.Fprintf(p.out, "\r\033[K   "+format, args...)
		p.pending = true
		return
	}
	if time.Since(p.last) >= time.Second {
		p.line(format, args...)
		p.last = time.Now()
	}
}

func (p *printer) clear() {
	if p.pending {
		fmt.Fprint(p.out, "\r\033[K")
		p.pending = false
	}
}

// thousands prints a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.0f ms", float64(d.Microseconds())/1000)
}

// lag is how far behind the source a query is.
func (s status) lag() string {
	if s.LagSeconds == nil {
		return "?"
	}
	return fmt.Sprintf("%.1f s", *s.LagSeconds)
}

// short leaves of a GTID set of one server the end of its name and its transactions.
func short(point string) string {
	uuid, rest, ok := strings.Cut(point, ":")
	if !ok || len(uuid) != 36 || strings.Contains(rest, ",") {
		return point
	}
	return "..." + uuid[24:] + ":" + rest
}
