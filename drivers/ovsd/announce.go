package ovsd

import (
	"context"
	"slices"
	"time"

	"github.com/contiv/netplugin/drivers"
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
	ipv4, ipv6 string
	port       uint32
	tag        uint16
}

// announcements is what is to be announced. The Driver's lock guards it.
type announcements struct {
	last map[string]announcement // by endpoint id
	due  map[string]pendingAnnouncement
	kick chan struct{}
}

type pendingAnnouncement struct {
	times int
	next  time.Time
}

func newAnnouncements() announcements {
	return announcements{last: map[string]announcement{}, due: map[string]pendingAnnouncement{}, kick: make(chan struct{}, 1)}
}

func (a *announcements) schedule(id string, times int) {
	have := a.due[id]
	a.due[id] = pendingAnnouncement{times: max(have.times, times), next: time.Now()}
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

// announcing reports whether an endpoint with a port is announced. The caller holds mu.
func (d *Driver) announcing(e drivers.Endpoint) bool {
	return e.Local && e.Network.Encap == ofnet.VLAN && d.global.FwdMode == "bridge"
}

// noteForAnnouncement has an endpoint announced if it is new here or has changed. The
// caller holds mu.
func (d *Driver) noteForAnnouncement(e drivers.Endpoint, port uint32) {
	if !d.announcing(e) || port == 0 {
		delete(d.announce.last, e.ID)
		delete(d.announce.due, e.ID)
		return
	}
	now := announcement{mac: e.MAC, ipv4: text(e.IPv4), ipv6: text(e.IPv6), port: port, tag: e.VLAN()}
	if d.announce.last[e.ID] != now {
		d.announce.last[e.ID] = now
		d.announce.schedule(e.ID, 1)
	}
}

// Announce has the endpoints of a group on this host announced in the underlay, 15 times
// at an interval of 3 s; group 0 means all. It returns how many those are and does not
// wait.
func (d *Driver) Announce(group uint32) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for id := range d.announce.last {
		if group == 0 || d.endpoints[id].Group == group {
			d.announce.schedule(id, askedTimes)
			n++
		}
	}
	return n
}

// runAnnouncements sends what is due until ctx ends.
func (d *Driver) runAnnouncements(ctx context.Context) error {
	for ctx.Err() == nil {
		ids, packets, next := d.dueAnnouncements(time.Now())
		if len(packets) > 0 {
			send, cancel := context.WithTimeout(ctx, announceWith)
			err := d.sides[ofnet.VLAN].sw.Inject(send, packets)
			cancel()
			if err != nil && ctx.Err() == nil {
				d.cfg.Log.WithError(err).Debug("endpoints are not announced yet; retrying")
			}
			d.announcementsSent(ids, err == nil)
			continue
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-d.announce.kick:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return ctx.Err()
}

// maxAnnounced bounds the packets of one go.
const maxAnnounced = 64

// dueAnnouncements makes the packets of what is due, and says when the next is.
func (d *Driver) dueAnnouncements(now time.Time) (ids []string, packets []of.Message, next time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next = now.Add(time.Hour)
	for id, p := range d.announce.due {
		e, ok := d.endpoints[id]
		if !ok {
			delete(d.announce.due, id)
			continue
		}
		if p.next.After(now) || len(packets) >= maxAnnounced {
			if p.next.Before(next) {
				next = p.next
			}
			continue
		}
		made, err := ofnet.Announcement(e.MAC, e.IPv4, e.IPv6, d.ports[id])
		if err != nil {
			d.cfg.Log.WithError(err).WithField("endpoint", id).Error("an endpoint cannot be announced")
			delete(d.announce.due, id)
			continue
		}
		ids, packets = append(ids, id), slices.Concat(packets, made)
	}
	return ids, packets, next
}

// announcementsSent notes that endpoints have been announced once, or that it failed.
func (d *Driver) announcementsSent(ids []string, sent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, id := range ids {
		p, ok := d.announce.due[id]
		switch {
		case !ok:
		case !sent:
			d.announce.due[id] = pendingAnnouncement{times: p.times, next: now.Add(announceWait)}
		case p.times <= 1:
			delete(d.announce.due, id)
		default:
			d.announce.due[id] = pendingAnnouncement{times: p.times - 1, next: now.Add(askedEvery)}
		}
	}
}
