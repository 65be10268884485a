// Package wire is a connection to a MySQL source: short queries answered as text, and long results streamed row by row
// in the binary protocol, straight into column builders.
//
// The login, TLS and the short queries are go-mysql's (package client). Long results are read here, because go-mysql
// makes a Go value of every cell and copies each row three times on its way.
//
// # Contract
//
//   - Every session is set up so that values come unchanged and no default of the server cuts a long read short: text
//     in its column's stored bytes (character_set_results = NULL), TIMESTAMP in UTC, an empty sql_mode, time-outs raised.
//   - A stream of rows ends well only with the server's own end packet. A lost connection, an error packet in the
//     middle or a row that does not fit its description is an error, never an early end.
//   - A Conn belongs to one goroutine. A cancelled context closes it: the answer that was on its way can't be skipped.
package wire
