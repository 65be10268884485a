// Package clouds makes a plain MySQL server of package mysqltest look, to whoever connects, like one of a cloud's, or like
// an older version: by accounts with that product's privileges, by its tables and procedures in the schema mysql, and by a
// proxy that changes single answers of the server where nothing can be put there (version, variables, the error for a
// statement that the vendor forbids).
//
// What it imitates is from the vendors' manuals and from reports of users; docs/sources.md names the pages. It proves that
// the code takes the way that is meant for such a server, not that the vendor's server behaves like that.
package clouds
