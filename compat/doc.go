// Package compat finds out what a source server is and what it allows, and makes a plan of it that package snapshot
// carries out.
//
// Probe and ReadCatalog ask the server; NewPlan decides, as a pure function of what they found and of what is wished.
// All problems are found together, each with what is wrong, where, and what to do, so that nobody has to try ten times.
//
// The only lock plan of this release is LockGlobal. A server that does not allow it is refused by name: never is a
// weaker plan taken in silence (SNAP-20).
package compat
