// Package flowlog keeps this host's log of connections: one record for each, with the names
// of both ends and what decided, in a ring of bounded size in memory.
//
//	connections  the switch's connection table, read about once a second
//	denials      packets that the switch has denied and handed over, joined over a second
//	names        what addresses and numbers mean, from the store and what is declared
//	ring         the records, oldest first
//	hits         how often each rule has decided
//	stream       records as they are asked for, and as they come
//
// Names are resolved when a record is made, so that rules and containers that are gone
// keep theirs. What is left out is counted, and told as a gap.
// See docs/decisions/0036-see-and-explain.md.
package flowlog
