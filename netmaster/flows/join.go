package flows

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/contiv/netplugin/state/flowapi"
)

const (
	hold       = 2 * time.Second // how long a record waits for its second end
	apart      = 5 * time.Second // how far the starts at both ends may be apart
	remembered = 1 << 15         // connections that a second end or a change may still come for
)

// Tuple is what both ends of a connection agree on, whatever a service has made of the
// destination.
type Tuple struct {
	tenant, proto string
	src           netip.Addr
	port          uint16
}

// TupleOf is that of a record.
func TupleOf(r *flowapi.Record) Tuple { return Tuple{r.Tenant, r.Proto, r.Src.Address, r.Src.Port} }

// ends of a connection.
const (
	sender = iota
	receiver
)

// connection is what is known of a connection: what one or two hosts have said.
type connection struct {
	id    string
	halfs [2]*flowapi.Record // by sender and receiver; of one host that sees both, only the first
	keys  []string           // of the halves
	tuple Tuple
	since time.Time // when it was first heard of
	held  bool      // not told yet
}

// joiner makes one record of what two hosts see of a connection. It is used by one goroutine.
type joiner struct {
	tell func(flowapi.Record) error

	asked   map[string]bool // hosts whose agents can tell of a second end
	byTuple map[Tuple][]*connection
	byKey   map[string]*connection // by host and ID on that host
	all     []*connection          // in the order in which they were heard of
	waiting []*connection          // those that are held, in the same order
	ordered bool                   // hold everything: release says when
}

func newJoiner(tell func(flowapi.Record) error) *joiner {
	return &joiner{tell: tell, asked: map[string]bool{}, byTuple: map[Tuple][]*connection{}, byKey: map[string]*connection{}}
}

// add takes what a host says of a connection.
func (j *joiner) add(host string, r flowapi.Record, now time.Time) error {
	key := host + "/" + r.ID
	end := endAt(host, &r)
	if c := j.byKey[key]; c != nil { // news of what is known
		c.halfs[end] = &r
		return j.pass(c)
	}
	if c := j.other(&r, end, now); c != nil {
		c.halfs[end], c.keys = &r, append(c.keys, key)
		j.byKey[key] = c
		if c.held && end == sender {
			c.id = key
		}
		return j.pass(c)
	}
	c := &connection{id: key, keys: []string{key}, tuple: TupleOf(&r), since: now}
	c.halfs[end] = &r
	j.remember(c)
	if c.held = j.ordered || j.expects(host, &r, end); c.held {
		j.waiting = append(j.waiting, c)
		return nil
	}
	return j.tell(c.record())
}

// pass tells of a connection unless it is held and not complete.
func (j *joiner) pass(c *connection) error {
	if c.held && (j.ordered || c.halfs[sender] == nil || c.halfs[receiver] == nil) {
		return nil
	}
	c.held = false
	return j.tell(c.record())
}

// other finds the connection that a host tells the second end of.
func (j *joiner) other(r *flowapi.Record, end int, now time.Time) *connection {
	for _, c := range j.byTuple[TupleOf(r)] {
		known := c.halfs[1-end]
		if c.halfs[end] != nil || known == nil || slices.Equal(known.Hosts, r.Hosts) || !SameDestination(known, r) {
			continue
		}
		// Clocks may be apart: what is heard at the same time is the same.
		if r.Start.Sub(known.Start).Abs() <= apart || !j.ordered && now.Sub(c.since) <= apart {
			return c
		}
	}
	return nil
}

// SameDestination reports whether two records are of the same destination; one of them may
// have the address of the service for it.
func SameDestination(a, b *flowapi.Record) bool {
	return a.Dst.Address == b.Dst.Address && a.Dst.Port == b.Dst.Port || atService(a) || atService(b)
}

func atService(r *flowapi.Record) bool { return r.Service != nil && r.Service.Address == r.Dst.Address }

// endAt is the end that a host sees.
func endAt(host string, r *flowapi.Record) int {
	if r.Src.Host != host && r.Dst.Host == host {
		return receiver
	}
	return sender
}

// expects reports whether another host will tell of the other end.
func (j *joiner) expects(host string, r *flowapi.Record, end int) bool {
	peer := r.Dst
	if end == receiver {
		peer = r.Src
	}
	return peer.Host != "" && peer.Host != host && j.asked[peer.Host] && (end == receiver || r.Verdict == flowapi.Allowed)
}

// remember keeps a connection for what may come, and forgets the oldest.
func (j *joiner) remember(c *connection) {
	j.all, j.byTuple[c.tuple], j.byKey[c.keys[0]] = append(j.all, c), append(j.byTuple[c.tuple], c), c
	if len(j.all) <= remembered {
		return
	}
	old := j.all[0]
	j.all = j.all[1:]
	for _, key := range old.keys {
		delete(j.byKey, key)
	}
	rest := slices.DeleteFunc(j.byTuple[old.tuple], func(c *connection) bool { return c == old })
	if j.byTuple[old.tuple] = rest; len(rest) == 0 {
		delete(j.byTuple, old.tuple)
	}
}

// release tells of the held connections up to the first one that may not be told of yet.
func (j *joiner) release(may func(*connection) bool) error {
	for len(j.waiting) > 0 && (!j.waiting[0].held || may(j.waiting[0]) || len(j.waiting) >= remembered) {
		c := j.waiting[0]
		j.waiting = j.waiting[1:]
		if !c.held {
			continue
		}
		c.held = false
		if err := j.tell(c.record()); err != nil {
			return err
		}
	}
	return nil
}

// startedBefore is for connections that started before a time.
func startedBefore(t time.Time) func(*connection) bool {
	return func(c *connection) bool { return c.start().Before(t) }
}

// heardBefore is for connections that were heard of before a time.
func heardBefore(t time.Time) func(*connection) bool {
	return func(c *connection) bool { return !c.since.After(t) }
}

func (c *connection) start() time.Time {
	if h := c.halfs[sender]; h != nil {
		return h.Start
	}
	return c.halfs[receiver].Start
}

// record is what both ends have said, in one.
func (c *connection) record() flowapi.Record {
	s, r := c.halfs[sender], c.halfs[receiver]
	var out flowapi.Record
	switch {
	case r == nil:
		out = *s
	case s == nil:
		out = *r
	default:
		out = joined(*s, *r)
	}
	out.ID = c.id
	return out
}

// joined is the record of a connection of which s is what the sender's host has seen and r
// what the receiver's has.
func joined(s, r flowapi.Record) flowapi.Record {
	out := s
	out.Hosts = slices.Concat(s.Hosts, r.Hosts)
	out.Decisions = slices.Concat(s.Decisions, r.Decisions)
	if r.Start.Before(s.Start) {
		out.Start = r.Start
	}
	if out.End.IsZero() || r.End.After(out.End) {
		out.End = cmpTime(r.End, out.End)
	}
	if r.Verdict != flowapi.Allowed {
		out.Verdict = r.Verdict
	}
	out.Src, out.Dst = named(s.Src, r.Src), named(r.Dst, s.Dst)
	out.Service, out.Audited = cmp.Or(s.Service, r.Service), s.Audited || r.Audited
	if out.WouldBe == nil || r.WouldBe != nil && r.WouldBe.Verdict != flowapi.Allowed && out.WouldBe.Verdict == flowapi.Allowed {
		out.WouldBe = cmp.Or(r.WouldBe, out.WouldBe)
	}
	// Both have counted the same packets.
	out.Packets, out.Bytes, out.Count = max(s.Packets, r.Packets), max(s.Bytes, r.Bytes), max(s.Count, r.Count)
	return out
}

func cmpTime(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// named is an end as its own host knows it, with the names that only the other knows.
func named(own, other flowapi.End) flowapi.End {
	if own.Endpoint == "" && other.Endpoint != "" && own.Address == other.Address {
		return other
	}
	return own
}
