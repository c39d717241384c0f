package ofnet

import "time"

// losses counts how often a bridge that had our flows came back without any: its
// ovs-vswitchd has ended and another one has taken its place. Protected by the Switch's
// lock.
type losses struct {
	had   bool // the bridge had flows when last known
	seen  int  // flows of ours found in the current reading
	count uint64
	at    time.Time // of the last loss
}

// begin starts a reading; known is how many flows the bridge had when the last connection
// ended. A reading that was cut short does not lower this.
func (l *losses) begin(known int) {
	l.had = l.had || known > 0
	l.seen = 0
}

// saw records a flow of the bridge.
func (l *losses) saw(cookie uint64) {
	if cookieFeature(cookie) != 0 {
		l.seen++
	}
}

// end ends a reading and reports whether the flows were lost.
func (l *losses) end(now time.Time) bool {
	lost := l.had && l.seen == 0
	if lost {
		l.count, l.at = l.count+1, now
	}
	l.had = false
	return lost
}
