package compat

import (
	"fmt"
	"strings"
)

// Problem is one reason why a source can't be materialized, or, among warnings, what works but may stop working. Its
// JSON form is that of tidemark check --json.
type Problem struct {
	// Code names the kind of problem, for programs; it does not change between releases. docs/sources.md lists them.
	Code string `json:"code"`
	// Table is the table that is concerned, without its database; "" where it is the server or the account.
	Table string `json:"table,omitempty"`
	// What is wrong and where, as a sentence.
	What string `json:"problem"`
	// Do is what to do about it, in words; Statements are the SQL statements or the vendor's commands that do it, in order.
	Do         string   `json:"remedy,omitempty"`
	Statements []string `json:"statements,omitempty"`
	// Manual is the page of the vendor's manual on which this rests, where it rests on one.
	Manual string `json:"manual,omitempty"`
}

func (p Problem) String() string {
	text := p.What
	if p.Do != "" {
		text += "; " + p.Do
	}
	if len(p.Statements) > 0 {
		sep := "; "
		if p.Do != "" {
			sep = ": "
		}
		text += sep + strings.Join(p.Statements, "; ")
	}
	return text
}

// problem makes one of a remedy.
func problem(code, what string, r remedy) Problem {
	return Problem{Code: code, What: what, Do: r.do, Statements: r.statements, Manual: r.manual}
}

// ProblemsError is all problems at once.
type ProblemsError struct {
	Addr     string
	Problems []Problem
}

func (e *ProblemsError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	if len(lines) == 1 {
		return fmt.Sprintf("MySQL at %s can't be materialized: %s", e.Addr, lines[0])
	}
	return fmt.Sprintf("MySQL at %s can't be materialized, for %d reasons:\n  - %s", e.Addr, len(lines), strings.Join(lines, "\n  - "))
}
