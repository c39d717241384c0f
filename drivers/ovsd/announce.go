package ovsd

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet"
)

// In the VLAN mode bridge the fabric outside learns where an endpoint is from its
// packets, and neighbours keep its MAC for a while. So the host announces an endpoint
// when it appears here or changes, the endpoints of a group again and again when a
// netmaster asks for it, because the fabric has been told of them only then, and all of
// them likewise when the way out is back. Over tunnels
// nothing is announced: there, flows follow the endpoints' records.
const (
	askedTimes   = 15 // announcements when a netmaster asks for them, or the way out is back
	askedEvery   = 3 * time.Second
	announceWith = 2 * time.Second // the bridge's time to send them
	announceWait = time.Second     // before announcing again what it did not take
)

// announcement is what is said of an endpoint.
type announcement struct {
	mac        ofnet.MAC
	ipv4, ipv6 netip.Addr
	port       uint32
	tag        uint16
}

// announcer knows what is to be announced, and announces it.
type announcer struct {
	kick chan struct{}

	mu     sync.Mutex
	last   map[string]announcement // by endpoint id
	groups map[string]uint32       // of these endpoints
	due    map[string]pendingAnnouncement
}

type pendingAnnouncement struct {
	times int
	next  time.Time
}

func newAnnouncer() *announcer {
	return &announcer{
		kick: make(chan struct{}, 1), last: map[string]announcement{}, groups: map[string]uint32{}, due: map[string]pendingAnnouncement{},
	}
}

// set has an endpoint announced if it is new here or has changed.
func (a *announcer) set(id string, now announcement, group uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.groups[id] = group
	if a.last[id] != now {
		a.last[id] = now
		a.schedule(id, 1)
	}
}

func (a *announcer) remove(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, id)
	delete(a.groups, id)
	delete(a.due, id)
}

// schedule has an endpoint announced so many times. The caller holds mu.
func (a *announcer) schedule(id string, times int) {
	have := a.due[id]
	a.due[id] = pendingAnnouncement{times: max(have.times, times), next: time.Now()}
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

// announce has the endpoints of a group announced again, of all groups for 0.
func (a *announcer) announce(group uint32, times int) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.last {
		if group == 0 || a.groups[id] == group {
			a.schedule(id, times)
			n++
		}
	}
	return n
}

// Announce has the endpoints of a group on this host announced in the underlay, 15 times
// at an interval of 3 s; group 0 means all. It returns how many those are and does not
// wait.
func (d *Driver) Announce(group uint32) int { return d.announcer.announce(group, askedTimes) }

// run sends what is due until ctx ends.
func (a *announcer) run(ctx context.Context, sw *ofnet.Switch, log logrus.FieldLogger) error {
	for ctx.Err() == nil {
		ids, packets, next := a.collect(time.Now(), log)
		if len(packets) > 0 {
			send, cancel := context.WithTimeout(ctx, announceWith)
			err := sw.Inject(send, packets)
			cancel()
			if err != nil && ctx.Err() == nil {
				log.WithError(err).Debug("cannot announce endpoints; retrying")
			}
			a.sent(ids, err == nil)
			continue
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-a.kick:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return ctx.Err()
}

// maxAnnounced bounds the packets of one go.
const maxAnnounced = 64

// collect makes the packets of what is due, and says when the next is.
func (a *announcer) collect(now time.Time, log logrus.FieldLogger) (ids []string, packets []of.Message, next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next = now.Add(time.Hour)
	for id, p := range a.due {
		if p.next.After(now) || len(packets) >= maxAnnounced {
			if p.next.Before(next) {
				next = p.next
			}
			continue
		}
		e := a.last[id]
		made, err := ofnet.Announcement(e.mac, e.ipv4, e.ipv6, e.port)
		if err != nil {
			log.WithError(err).WithField("endpoint", id).Error("cannot announce endpoint")
			delete(a.due, id)
			continue
		}
		ids, packets = append(ids, id), slices.Concat(packets, made)
	}
	return ids, packets, next
}

// sent notes that endpoints have been announced once, or that it failed.
func (a *announcer) sent(ids []string, sent bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for _, id := range ids {
		p, ok := a.due[id]
		switch {
		case !ok:
		case !sent:
			a.due[id] = pendingAnnouncement{times: p.times, next: now.Add(announceWait)}
		case p.times <= 1:
			delete(a.due, id)
		default:
			a.due[id] = pendingAnnouncement{times: p.times - 1, next: now.Add(askedEvery)}
		}
	}
}
