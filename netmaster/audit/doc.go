// Package audit notes who did what through a netmaster, with which result: every request
// that changes something, every login, and every request that was refused. Requests that
// only read are noted when they are refused. Bodies are never looked at, so secrets are not
// in it.
//
// Records are JSON lines in a file of this netmaster, which is rotated, or go to syslog.
// They are written by one goroutine; requests do not wait for it. When it cannot follow,
// records are dropped, counted, and the next record that is written says how many. A
// request that a follower passes on to the leader is noted by both.
package audit
