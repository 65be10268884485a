// Package compat finds out what a source server is and what it allows, and makes a plan of it that package snapshot
// carries out.
//
// Examine asks the server (Probe), reads the definitions (ReadCatalog) and tries what the server's own word is not good
// for; NewPlan decides, as a pure function of what they found and of what is wished. All problems are found together, each
// with what is wrong, where, and what to do on this product, so that nobody has to try ten times.
//
// What depends on the product is in one table (quirks.go); what depends on the version is told by the server's errors, not
// by comparing versions, wherever that is possible. The strongest lock plan that is allowed is taken, or the one that is
// asked for, or the source is refused: never a weaker one in silence (SNAP-20). docs/sources.md is for users.
package compat
