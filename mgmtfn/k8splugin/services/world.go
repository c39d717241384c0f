package services

import (
	"encoding/json"
	"net/netip"
	"strings"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
)

// world is what of Contiv's own state says whose container has an address.
type world struct {
	endpoints map[string]container               // by endpoint id
	byAddr    map[netip.Addr]map[string]struct{} // endpoint ids
	tenants   map[string]string                  // by network id
}

// container is one endpoint.
type container struct {
	network, host, name string
	addrs               [2]netip.Addr
}

func newWorld() world {
	return world{endpoints: map[string]container{}, byAddr: map[netip.Addr]map[string]struct{}{}, tenants: map[string]string{}}
}

// apply takes a batch over and returns the addresses whose owner may have changed.
func (w *world) apply(batch objdb.Batch) (changed map[netip.Addr]struct{}) {
	changed = map[netip.Addr]struct{}{}
	present := map[string]struct{}{}
	for _, ev := range batch.Events {
		if batch.Snapshot {
			present[ev.KV.Key] = struct{}{}
		}
		if id, ok := strings.CutPrefix(ev.KV.Key, state.NetworkRoot); ok {
			w.setNetwork(id, ev, changed)
		} else if id, ok := strings.CutPrefix(ev.KV.Key, state.EndpointRoot); ok {
			w.setEndpoint(id, ev, changed)
		}
	}
	if !batch.Snapshot {
		return changed
	}
	for id := range w.endpoints {
		if _, ok := present[state.EndpointRoot+id]; !ok {
			w.replace(id, container{}, changed)
		}
	}
	for id := range w.tenants {
		if _, ok := present[state.NetworkRoot+id]; !ok {
			delete(w.tenants, id)
		}
	}
	return changed
}

func (w *world) setNetwork(id string, ev objdb.Event, changed map[netip.Addr]struct{}) {
	var rec state.Network
	if !ev.Deleted && json.Unmarshal(ev.KV.Value, &rec) != nil { // the agent complains about it
		return
	}
	if w.tenants[id] == rec.Tenant {
		return
	}
	w.tenants[id] = rec.Tenant
	if ev.Deleted {
		delete(w.tenants, id)
	}
	for _, c := range w.endpoints {
		if c.network == id {
			c.note(changed)
		}
	}
}

func (w *world) setEndpoint(id string, ev objdb.Event, changed map[netip.Addr]struct{}) {
	var c container
	if !ev.Deleted {
		var rec state.Endpoint
		if json.Unmarshal(ev.KV.Value, &rec) != nil {
			return
		}
		c = container{network: rec.NetID, host: rec.HomingHost, name: rec.EPCommonName}
		for i, text := range []string{rec.IPAddress, rec.IPv6Address} {
			c.addrs[i], _ = netip.ParseAddr(text) // none: not valid
		}
	}
	w.replace(id, c, changed)
}

// replace puts c in the place of an endpoint; the zero container removes it.
func (w *world) replace(id string, c container, changed map[netip.Addr]struct{}) {
	old := w.endpoints[id]
	if old == c {
		return
	}
	for _, a := range old.addrs {
		delete(w.byAddr[a], id)
		if len(w.byAddr[a]) == 0 {
			delete(w.byAddr, a)
		}
	}
	old.note(changed)
	c.note(changed)
	delete(w.endpoints, id)
	if c == (container{}) {
		return
	}
	w.endpoints[id] = c
	for _, a := range c.addrs {
		if !a.IsValid() {
			continue
		}
		if w.byAddr[a] == nil {
			w.byAddr[a] = map[string]struct{}{}
		}
		w.byAddr[a][id] = struct{}{}
	}
}

func (c container) note(changed map[netip.Addr]struct{}) {
	for _, a := range c.addrs {
		if a.IsValid() {
			changed[a] = struct{}{}
		}
	}
}

// owner finds the container that has an address. Tenants may have the same addresses:
// then the pod's name and its node decide, as far as they are known (not empty).
func (w *world) owner(a netip.Addr, pod, node string) (c container, tenant string, ok bool) {
	var found []container
	for id := range w.byAddr[a] {
		found = append(found, w.endpoints[id])
	}
	narrow := func(want string, of func(container) string) {
		if want == "" || len(found) < 2 {
			return
		}
		var fit []container
		for _, c := range found {
			if of(c) == want {
				fit = append(fit, c)
			}
		}
		found = fit
	}
	narrow(pod, func(c container) string { return c.name })
	narrow(node, func(c container) string { return c.host })
	if len(found) != 1 {
		return container{}, "", false
	}
	tenant, ok = w.tenants[found[0].network]
	return found[0], tenant, ok
}
