package records

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
)

// Records are those of the state prefix of the store, as of the last batch. They are not safe for
// concurrent use. Create them with New.
type Records struct {
	host string // label
	all  bool

	networks  map[string]network // by id
	local     map[string]string  // network ids of this host's endpoints, by endpoint id
	endpoints map[string]*pack   // by network id
	others    map[string]*pack   // rules, services and lists of providers, by tenant
	unsettled bool               // what is here may have changed, or which packs there are
	touched   map[*pack]bool     // by the batch
	packer    packer
}

// network is what matters here of a network.
type network struct {
	Tenant     string `json:"tenant"`
	PktTagType string `json:"pktTagType"`
}

// endpoint is what matters here of an endpoint.
type endpoint struct {
	NetID      string `json:"netID"`
	HomingHost string `json:"homingHost"`
}

// item is an event with the pack that it belongs to; none: it concerns every host.
type item struct {
	objdb.Event
	pack            *pack
	local, wasLocal bool // the endpoint is this host's, or was before
}

// New makes the records of a host. With all, it needs those of every tenant: everything is passed
// on and nothing kept.
func New(label string, all bool) *Records {
	r := &Records{host: label, all: all}
	r.forget()
	return r
}

func (r *Records) forget() {
	r.networks, r.local = map[string]network{}, map[string]string{}
	r.endpoints, r.others, r.touched = map[string]*pack{}, map[string]*pack{}, map[*pack]bool{}
}

// Take takes in a batch of the watch and returns what it means to this host, each key once. The
// error says that records of a tenant that has just come here, or left, are missing in that.
func (r *Records) Take(b objdb.Batch) (objdb.Batch, error) {
	events := latest(b)
	out := objdb.Batch{Snapshot: b.Snapshot, Revision: b.Revision}
	if r.all {
		out.Events = events
		return out, nil
	}
	if b.Snapshot {
		r.forget()
	}
	items := make([]item, 0, len(events))
	for _, ev := range events {
		items = append(items, r.keep(ev))
	}
	moved := r.settle()
	for _, it := range items {
		if ev, pass := it.event(b.Snapshot, moved); pass {
			out.Events = append(out.Events, ev)
		}
	}
	var err error
	if !b.Snapshot { // which is complete as it is
		out.Events, err = r.appendMoved(out.Events, moved)
	}
	for p := range r.touched {
		err = errors.Join(err, p.tidy(&r.packer, b.Snapshot))
	}
	clear(r.touched)
	return out, err
}

// latest are the events of a batch that agents need, the last one of each key: a batch may be of
// several revisions.
func latest(b objdb.Batch) []objdb.Event {
	out := make([]objdb.Event, 0, len(b.Events))
	at := map[string]int{}
	for _, ev := range b.Events {
		if strings.HasPrefix(ev.KV.Key, state.IPAMRoot) || strings.HasPrefix(ev.KV.Key, state.TagRoot) {
			continue // netmaster's only
		}
		if i, again := at[ev.KV.Key]; again {
			out[i] = ev
			continue
		}
		if !b.Snapshot {
			at[ev.KV.Key] = len(out)
		}
		out = append(out, ev)
	}
	return out
}

// keep keeps what an event says.
func (r *Records) keep(ev objdb.Event) item {
	switch key := ev.KV.Key; {
	case strings.HasPrefix(key, state.NetworkRoot):
		r.keepNetwork(strings.TrimPrefix(key, state.NetworkRoot), ev)
	case strings.HasPrefix(key, state.EndpointRoot):
		return r.keepEndpoint(strings.TrimPrefix(key, state.EndpointRoot), ev)
	case strings.HasPrefix(key, state.PolicyRuleRoot):
		tenant, _, _ := strings.Cut(strings.TrimPrefix(key, state.PolicyRuleRoot), ":")
		return r.keepOther(tenant, ev)
	case strings.HasPrefix(key, state.ServiceLBRoot), strings.HasPrefix(key, state.ProviderRoot):
		_, tenant := state.SplitServiceID(key)
		return r.keepOther(tenant, ev)
	}
	return item{Event: ev}
}

func (r *Records) keepNetwork(id string, ev objdb.Event) {
	var n network
	if ev.Deleted {
		delete(r.networks, id)
	} else if json.Unmarshal(ev.KV.Value, &n) == nil {
		r.networks[id] = n
	}
	r.unsettled = true
}

// keepEndpoint keeps a record of an endpoint, unless it is none that netmaster would make. That is
// for others to complain about.
func (r *Records) keepEndpoint(id string, ev objdb.Event) item {
	_, wasLocal := r.local[id]
	if ev.Deleted {
		r.unsettled = r.unsettled || wasLocal
		delete(r.local, id)
		r.removeEndpoint(id, ev)
		return item{Event: ev}
	}
	var e endpoint
	if json.Unmarshal(ev.KV.Value, &e) != nil || !strings.HasPrefix(id, state.EndpointID(e.NetID, "")) {
		return item{Event: ev}
	}
	it := item{Event: ev, pack: r.packOf(r.endpoints, e.NetID), local: e.HomingHost == r.host, wasLocal: wasLocal}
	r.add(it.pack, ev)
	if it.local {
		r.local[id] = e.NetID
	} else {
		delete(r.local, id)
	}
	r.unsettled = r.unsettled || it.local != wasLocal
	return it
}

// removeEndpoint removes one that has been deleted. The names of networks may have hyphens: the id
// alone does not always tell which network it is, but only one of those has such an endpoint.
func (r *Records) removeEndpoint(id string, ev objdb.Event) {
	for i, c := range id {
		if p := r.endpoints[id[:i]]; c == '-' && p != nil {
			r.add(p, ev)
		}
	}
}

// keepOther keeps a record of a tenant.
func (r *Records) keepOther(tenant string, ev objdb.Event) item {
	if tenant == "" {
		return item{Event: ev}
	}
	p := r.packOf(r.others, tenant)
	r.add(p, ev)
	return item{Event: ev, pack: p}
}

func (r *Records) add(p *pack, ev objdb.Event) {
	p.add(ev)
	r.touched[p] = true
}

func (r *Records) packOf(packs map[string]*pack, id string) *pack {
	p := packs[id]
	if p == nil {
		p = &pack{}
		packs[id] = p
		r.unsettled = true
	}
	return p
}

// event is what an item means to this host, if anything.
func (it item) event(snapshot bool, moved map[*pack]bool) (ev objdb.Event, pass bool) {
	switch {
	case it.pack == nil || it.Deleted || it.local && !it.pack.here:
		return it.Event, true
	case it.pack.here: // or it comes with the others of its pack
		return it.Event, snapshot || !moved[it.pack]
	case it.wasLocal && !moved[it.pack]: // or it goes with them
		return objdb.Event{KV: objdb.KV{Key: it.KV.Key, ModRevision: it.KV.ModRevision}, Deleted: true}, true
	}
	return it.Event, false
}

// settle brings up to date which packs are here, and returns those of which that has changed.
func (r *Records) settle() map[*pack]bool {
	if !r.unsettled {
		return nil
	}
	r.unsettled = false
	here := map[string]bool{}
	for _, id := range r.local {
		if n, known := r.networks[id]; known {
			here[n.Tenant] = true
		}
	}
	for _, n := range r.networks {
		if n.PktTagType != state.EncapVXLAN {
			here[n.Tenant] = true
		}
	}
	moved := map[*pack]bool{}
	settle := func(packs map[string]*pack, id string, here bool) {
		p := packs[id]
		if p.here != here {
			p.here, moved[p] = here, true
		}
		if p.empty() && !moved[p] {
			delete(packs, id)
		}
	}
	for id := range r.endpoints {
		n, known := r.networks[id]
		settle(r.endpoints, id, known && here[n.Tenant])
	}
	for tenant := range r.others {
		settle(r.others, tenant, here[tenant])
	}
	return moved
}

// appendMoved appends the records of packs that have come here, and the deletion of those that
// have left. Endpoints of this host stay, even those of an unknown network.
func (r *Records) appendMoved(events []objdb.Event, moved map[*pack]bool) ([]objdb.Event, error) {
	for p := range moved {
		kvs, err := p.records()
		if err != nil {
			return events, err
		}
		for _, kv := range kvs {
			_, local := r.local[strings.TrimPrefix(kv.Key, state.EndpointRoot)]
			switch {
			case p.here:
				events = append(events, objdb.Event{KV: kv})
			case !local:
				events = append(events, objdb.Event{KV: objdb.KV{Key: kv.Key}, Deleted: true})
			}
		}
	}
	return events, nil
}

// Size returns how many bytes are kept of records.
func (r *Records) Size() (n int) {
	for _, packs := range []map[string]*pack{r.endpoints, r.others} {
		for _, p := range packs {
			n += p.size()
		}
	}
	return n
}
