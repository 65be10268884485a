// Package wire is a connection to a MySQL source: short queries answered as text, and long results streamed row by row
// in the binary protocol, straight into column builders.
//
// All of it is our own, but for constants and the scrambles of passwords. go-mysql's login (package client) sends the
// password in the clear to any server that asks for it, encrypted or not, and breaks on packets that are too short; its
// results make a Go value of every cell and copy each row three times on its way.
//
// # Contract
//
//   - Every session is set up so that values come unchanged and no default of the server cuts a long read short: text
//     in its column's stored bytes (character_set_results = NULL), TIMESTAMP in UTC, an empty sql_mode, time-outs raised.
//   - Nothing that a server says makes us say the password in the clear over a connection that is neither encrypted nor a
//     Unix socket, and a connection that has to be encrypted, or has been so before, never comes about otherwise.
//   - A stream of rows ends well only with the server's own end packet. A lost connection, an error packet in the
//     middle or a row that does not fit its description is an error, never an early end.
//   - A Conn belongs to one goroutine. A cancelled context closes it: the answer that was on its way can't be skipped.
package wire
