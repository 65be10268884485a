// Package ddl says what a statement of the source's binlog does to the definitions of the followed tables. It is pure:
// a statement, the session state it was logged with, and what is known at that position go in; effects come out.
//
// # Contract
//
//   - [Apply] never passes over a statement whose effect on a followed table it does not know. Such a statement gives
//     [Quarantine] for the tables it can touch; if they can't be told, it gives an [*UnknownError], which stops the
//     database.
//   - A statement that can't touch a followed table is ignored by its kind (its leading words, as MySQL's grammar fixes
//     them) and by its target's name, before anything else of it is looked at. So statements on other databases, views,
//     routines, triggers, events and users need not be understood.
//   - Known means: [Catalog.Table] knows every base table of the database that the filters let through. Each effect
//     must be applied before the next statement is given.
//   - What a definition becomes is what information_schema of the source says behind the statement, as package compat
//     reads it. Exempt, and of no effect but on SHOW, are the texts of expressions, which are kept as they were written,
//     and indexes that the server made by itself for foreign keys and drops by itself once another index serves.
//
// The grammar is read by a parser of our own. TiDB's, which the query side uses, refuses what MySQL's binlog holds every
// day: INVISIBLE (so every generated invisible primary key), DEFAULT (a + 1), CREATE TABLE .. START TRANSACTION, CHAR
// BYTE, SRID, and every character set that TiDB lacks.
package ddl
