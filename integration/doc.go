// Package integration has the tests of the whole: the program as people run it, against a real MySQL, with connections
// that are cut, servers that are killed, disks that fill up, and every row compared at the end; and the tests of the
// tree itself, such as which package may import which.
//
// Below it, mysqltest runs a real MySQL for every package's tests, tidemarktest the program, shop is a source's load
// with invariants that must hold at every point, and demo is what `make demo` shows.
package integration
