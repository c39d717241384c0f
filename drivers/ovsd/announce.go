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

// In the VLAN bridge, the physical network learns from packets where an endpoint is, and
// neighbors cache its MAC. The host therefore sends gratuitous announcements: for an
// endpoint that is new here or has changed; for the endpoints of a group when a netmaster
// asks for it, because only then does the fabric know them; and for all endpoints when an
// uplink comes back. Tunnels need no announcements: their flows come from the endpoints'
// records.
const (
	askedTimes   = 15 // announcements when a netmaster asks, or an uplink comes back
	askedEvery   = 3 * time.Second
	announceWith = 2 * time.Second // how long the bridge may take to send them
	announceWait = time.Second     // before retrying what the bridge did not take
)

// announcement is what is announced of an endpoint.
type announcement struct {
	mac        ofnet.MAC
	ipv4, ipv6 netip.Addr
	port       uint32
	tag        uint16
}

// announcer keeps what has to be announced, and sends it.
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

// set schedules announcements of an endpoint that is new here or has changed.
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

// schedule schedules a number of announcements of an endpoint. The caller holds mu.
func (a *announcer) schedule(id string, times int) {
	have := a.due[id]
	a.due[id] = pendingAnnouncement{times: max(have.times, times), next: time.Now()}
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

// announce schedules announcements of a group's endpoints, for group 0 of all.
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

// Announce schedules announcements of a group's endpoints on this host to the underlay, 15
// times at an interval of 3 s; group 0 means all. It returns the number of endpoints and
// does not wait.
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

// maxAnnounced is how many packets are sent at a time.
const maxAnnounced = 64

// collect makes the packets of what is due, and returns when the next one is.
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

// sent records whether endpoints have been announced.
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
