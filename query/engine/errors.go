package engine

import (
	"context"
	"errors"
	"strings"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// Kind classes the errors of the engine.
type Kind uint8

// The kinds that callers tell apart. Everything else is KindOther.
const (
	KindOther        Kind = iota
	KindSyntax            // the text is no statement of DuckDB's dialect
	KindUnresolved        // unknown names, wrong types: found before anything ran
	KindValue             // a value that an expression cannot take: conversion, overflow, more than one row in a scalar subquery
	KindMemory            // memory limit reached, and no temporary space (left)
	KindAccess            // a file, a setting or a statement that is not allowed
	KindFile              // a part cannot be read
	KindInterrupted       // stopped by its context
	KindInternal          // DuckDB broke one of its own invariants
	KindNotSupported      // DuckDB does not have it
)

var kindNames = [...]string{
	KindOther: "query", KindSyntax: "syntax", KindUnresolved: "binding", KindValue: "value", KindMemory: "memory", KindAccess: "access",
	KindFile: "file", KindInterrupted: "interrupted", KindInternal: "internal", KindNotSupported: "not supported",
}

// String names the kind in one word.
func (k Kind) String() string { return kindNames[k] }

// Error is an error of DuckDB.
type Error struct {
	Kind    Kind
	Message string // DuckDB's own, the query text it points at left out
	cause   error
}

func (e *Error) Error() string { return e.Kind.String() + ": " + e.Message }

// Unwrap gives the context's error for a query that was stopped, and ErrBroken for an internal error.
func (e *Error) Unwrap() error { return e.cause }

// ErrBroken is wrapped by errors after which DuckDB cannot be used any more. The engine starts a fresh one for the next
// query by itself.
var ErrBroken = errors.New("the query engine had an internal error and was restarted")

var kinds = map[duckdb.ErrorType]Kind{
	duckdb.ErrorTypeParser: KindSyntax, duckdb.ErrorTypeSyntax: KindSyntax,
	duckdb.ErrorTypeBinder: KindUnresolved, duckdb.ErrorTypeCatalog: KindUnresolved, duckdb.ErrorTypeMismatchType: KindUnresolved,
	duckdb.ErrorTypeUnknownType: KindUnresolved, duckdb.ErrorTypeParameterNotResolved: KindUnresolved,
	duckdb.ErrorTypeOutOfRange: KindValue, duckdb.ErrorTypeConversion: KindValue, duckdb.ErrorTypeInvalidInput: KindValue,
	duckdb.ErrorTypeDivideByZero: KindValue, duckdb.ErrorTypeDecimal: KindValue, duckdb.ErrorTypeInvalidType: KindValue,
	duckdb.ErrorTypeOutOfMemory: KindMemory, duckdb.ErrorTypeObjectSize: KindMemory,
	duckdb.ErrorTypePermission: KindAccess, duckdb.ErrorTypeErrorIO: KindFile,
	duckdb.ErrorTypeInterrupt: KindInterrupted, duckdb.ErrorTypeInternal: KindInternal, duckdb.ErrorTypeFatal: KindInternal,
	duckdb.ErrorTypeNotImplemented: KindNotSupported,
}

// newError makes the typed error. ctx may be nil when nothing could have stopped the query.
func newError(ctx context.Context, t duckdb.ErrorType, message string) error {
	e := &Error{Kind: kinds[t], Message: cleanMessage(message)}
	switch {
	case e.Kind == KindInternal:
		e.cause = ErrBroken
	case ctx != nil && ctx.Err() != nil:
		e.Kind, e.cause = KindInterrupted, context.Cause(ctx)
	}
	return e
}

// cleanMessage leaves out the excerpt of the query that follows the message: it may hold values.
func cleanMessage(m string) string {
	if i := strings.Index(m, "\n\nLINE "); i >= 0 {
		m = m[:i]
	}
	return strings.TrimSpace(m)
}

// Prepared statements give their error as text only; DuckDB starts it with the name of the error's type.
var prefixes = []struct {
	prefix string
	t      duckdb.ErrorType
}{
	{"Parser Error", duckdb.ErrorTypeParser}, {"Syntax Error", duckdb.ErrorTypeParser},
	{"Binder Error", duckdb.ErrorTypeBinder}, {"Catalog Error", duckdb.ErrorTypeCatalog},
	{"Permission Error", duckdb.ErrorTypePermission}, {"IO Error", duckdb.ErrorTypeErrorIO},
	{"Conversion Error", duckdb.ErrorTypeConversion}, {"Out of Range Error", duckdb.ErrorTypeOutOfRange},
	{"Invalid Input Error", duckdb.ErrorTypeInvalidInput}, {"Invalid type Error", duckdb.ErrorTypeInvalidType},
	{"Not implemented Error", duckdb.ErrorTypeNotImplemented},
	{"Out of Memory Error", duckdb.ErrorTypeOutOfMemory}, {"INTERRUPT Error", duckdb.ErrorTypeInterrupt},
	{"INTERNAL Error", duckdb.ErrorTypeInternal}, {"FATAL Error", duckdb.ErrorTypeFatal},
}

func errorTypeOf(message string) duckdb.ErrorType {
	for _, p := range prefixes {
		if strings.HasPrefix(message, p.prefix) {
			return p.t
		}
	}
	return duckdb.ErrorTypeInvalid
}
