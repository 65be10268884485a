// Package differential holds the differential tests of SELECT: the same statement on a MySQL server and, over the same
// rows, on a store through query must give the same columns, rows and errors, or a refusal that names the construct.
//
// The statements stand in testdata: schema.sql and rows.sql make the tables, queries_*.sql are compared one by one. A
// statement ends with a semicolon at the end of a line. Rows are compared in order where the statement has an ORDER BY
// at its end, else in any order. To extend the list, add statements. Those that may be refused stand in refused.sql,
// so that no statement becomes refused unnoticed.
package differential
