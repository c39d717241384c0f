package ofnet

import "time"

// losses counts how often a bridge that had our flows came back without any: its
// ovs-vswitchd has ended, and another one has taken its place. The Switch's lock guards it.
type losses struct {
	had   bool // the bridge had flows when we last knew
	seen  int  // flows of ours that the present reading has found
	count uint64
	at    time.Time // of the last one
}

// begin starts a reading; known is how many flows the bridge had when the last
// channel ended. A reading that was cut short knows less than the one before.
func (l *losses) begin(known int) {
	l.had = l.had || known > 0
	l.seen = 0
}

// saw notes a flow that the bridge has.
func (l *losses) saw(cookie uint64) {
	if cookieFeature(cookie) != 0 {
		l.seen++
	}
}

// end ends a reading and reports whether it has found the flows gone.
func (l *losses) end(now time.Time) bool {
	lost := l.had && l.seen == 0
	if lost {
		l.count, l.at = l.count+1, now
	}
	l.had = false
	return lost
}
