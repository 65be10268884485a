// Package relay keeps a source's binlog on disk, from where it is followed on until it has been applied, so that neither
// a long copy nor a long pause of the side that applies meets a binlog that the source has purged.
//
// One Relay is one stream: its files are in MySQL's own format (docs/format/relay.md; mysqlbinlog reads them), one
// goroutine appends to them (Pull), any number of Readers follow, each from a point of its own.
//
// # Contract
//
//  1. What a Reader delivers is what binlog.Stream would: whole transactions, in the source's order, none left out. Every
//     event was verified when it was written and is verified again when it is read: each has a checksum here, also where
//     the source has none.
//  2. A Reader sees only what a later Open would find, but for what a power cut or a crash of the machine takes, which is at
//     most about the last second: that is pulled again. So a relay may be behind what was applied from it.
//  3. A torn tail is cut off. Damage to what was on disk for good is a *DamageError, never taken for the end.
//  4. Files go as a whole, oldest first, once everything in them has been applied (Prune) and nobody holds them (Hold).
//
// By GTIDs, files are cut at FileBytes and begin with a set; by position (a source without GTIDs) each is one whole file
// of the source, from its first byte, under its name, so that positions here are those of the source.
package relay
