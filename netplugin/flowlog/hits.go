package flowlog

import (
	"time"

	"github.com/contiv/netplugin/state/flowapi"
)

// mostHits limits the rules that are counted.
const mostHits = 1 << 16

// minutes are counted each, for an hour.
const minutes = 60

// hits counts what rules decided.
type hits map[hitKey]*hit

type hitKey struct {
	tenant, by, policy, rule string
	verdict                  flowapi.Verdict
	audit                    bool // it would have decided
}

type hit struct {
	count       uint64
	first, last time.Time
	minute      int64 // of the newest of minutes
	minutes     [minutes]uint32
}

func (h hits) count(tenant string, d flowapi.Decision, audit bool, n uint32, now time.Time) {
	if d.By == "" {
		return
	}
	key := hitKey{tenant, d.By, d.Policy, d.Rule, d.Verdict, audit}
	one := h[key]
	if one == nil {
		if len(h) >= mostHits {
			return
		}
		one = &hit{first: now, minute: now.Unix() / 60}
		h[key] = one
	}
	one.turn(now)
	one.count, one.last = one.count+uint64(n), now
	one.minutes[one.minute%minutes] += n
}

// turn clears the minutes that have begun since the last hit.
func (h *hit) turn(now time.Time) {
	minute := now.Unix() / 60
	for h.minute = max(h.minute, minute-minutes); h.minute < minute; {
		h.minute++
		h.minutes[h.minute%minutes] = 0
	}
}

// forget removes what has not decided for long, once there are many.
func (h hits) forget(now time.Time) {
	if len(h) < mostHits/2 {
		return
	}
	for key, one := range h {
		if now.Sub(one.last) > keep {
			delete(h, key)
		}
	}
}

// Hits tells how often each rule has decided since the log began, which it says as well.
func (l *Log) Hits() (since time.Time, all []flowapi.Hits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Now()
	all = make([]flowapi.Hits, 0, len(l.hits))
	for key, one := range l.hits {
		one.turn(now)
		out := flowapi.Hits{
			Tenant: key.tenant, By: key.by, Policy: key.policy, Rule: key.rule, Verdict: key.verdict, Audit: key.audit,
			Count: one.count, First: one.first.UTC(), Last: one.last.UTC(), Minutes: make([]uint32, 0, minutes),
		}
		for i := one.minute + 1; i <= one.minute+minutes; i++ {
			out.Minutes = append(out.Minutes, one.minutes[i%minutes])
		}
		all = append(all, out)
	}
	return l.began.UTC(), all
}
