// Package binlog turns a MySQL server's binary log into a stream of whole source transactions, and the row images in
// them into typed column values.
//
// # Contract
//
//   - [Stream.Next] gives transactions in the source's order, each complete: a transaction that was cut off by a lost
//     connection or a crash of the source is never seen, so its GTID may be counted as soon as it is delivered.
//   - Nothing is passed over. Row events of tables that are not followed are counted and dropped; every statement is
//     kept; an event of unknown type, a lost-events incident, or bytes that do not fit end the stream with an [Error].
//   - The stream reads the connection only inside Next. There is no queue: a slow reader is felt by the source's send
//     buffer, and what is held in memory is one transaction, at most Config.SpillBytes of it plus one event; the rest
//     lies in a temporary file. Compressed transactions are decompressed event by event.
//   - The stream never reconnects. It ends with an [Error] whose Class says whether trying again can help; the owner
//     opens a new one at the last point that it made durable.
//
// The connection and the login are those of package wire. go-mysql's BinlogSyncer is not used: it queues events by
// number and not by bytes, reconnects by itself, clones the GTID set for each transaction, decompresses a payload in
// one piece with all its events, asks for a fresh random replica UUID on each connect (which defeats the source's
// detection of two readers with one server id), and opens a second connection to kill the first on Close.
package binlog
