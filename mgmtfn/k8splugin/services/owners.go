package services

import (
	"encoding/json"
	"net/netip"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
)

// owners knows from Contiv's own state which container, of which tenant, has an address.
// Create it with newOwners.
type owners struct {
	networks  objdb.Mirror[string] // their tenants
	endpoints objdb.Mirror[container]
	byAddr    map[netip.Addr]map[string]struct{} // endpoint ids
	changed   map[netip.Addr]struct{}            // addresses whose owner may have changed
}

// container is one endpoint.
type container struct {
	network, host, name string
	addrs               [2]netip.Addr
}

func newOwners() *owners {
	o := &owners{byAddr: map[netip.Addr]map[string]struct{}{}, changed: map[netip.Addr]struct{}{}}
	// The agent logs what cannot be decoded.
	o.networks = objdb.Mirror[string]{Prefix: state.NetworkRoot, Decode: readNetwork, Changed: o.networkChanged}
	o.endpoints = objdb.Mirror[container]{Prefix: state.EndpointRoot, Decode: readContainer, Changed: o.endpointChanged}
	return o
}

// apply applies a batch and returns the addresses whose owner may have changed.
func (o *owners) apply(batch objdb.Batch) map[netip.Addr]struct{} {
	o.networks.Apply(batch)
	o.endpoints.Apply(batch)
	changed := o.changed
	o.changed = map[netip.Addr]struct{}{}
	return changed
}

// readNetwork returns the tenant of a network.
func readNetwork(value []byte) (tenant string, err error) {
	var rec state.Network
	err = json.Unmarshal(value, &rec)
	return rec.Tenant, err
}

func readContainer(value []byte) (container, error) {
	var rec state.Endpoint
	if err := json.Unmarshal(value, &rec); err != nil {
		return container{}, err
	}
	c := container{network: rec.NetID, host: rec.HomingHost, name: rec.EPCommonName}
	for i, text := range []string{rec.IPAddress, rec.IPv6Address} {
		c.addrs[i], _ = netip.ParseAddr(text) // the zero Addr if it is not valid
	}
	return c, nil
}

func (o *owners) networkChanged(change objdb.Change[string]) {
	if change.Old == change.New && change.Was == change.Is {
		return
	}
	for _, c := range o.endpoints.All() {
		if c.network == change.ID {
			o.note(c)
		}
	}
}

func (o *owners) endpointChanged(c objdb.Change[container]) {
	if c.Old == c.New && c.Was == c.Is {
		return
	}
	o.note(c.Old)
	o.note(c.New)
	for _, a := range c.Old.addrs {
		if delete(o.byAddr[a], c.ID); len(o.byAddr[a]) == 0 {
			delete(o.byAddr, a)
		}
	}
	for _, a := range c.New.addrs {
		if !a.IsValid() {
			continue
		}
		if o.byAddr[a] == nil {
			o.byAddr[a] = map[string]struct{}{}
		}
		o.byAddr[a][c.ID] = struct{}{}
	}
}

// note records that the owner of a container's addresses may have changed.
func (o *owners) note(c container) {
	for _, a := range c.addrs {
		if a.IsValid() {
			o.changed[a] = struct{}{}
		}
	}
}

// having lists the containers with an address.
func (o *owners) having(a netip.Addr) (all []container) {
	for id := range o.byAddr[a] {
		c, _ := o.endpoints.Get(id)
		all = append(all, c)
	}
	return all
}

// owner returns the container with an address. Tenants may use the same addresses: then the
// pod's name and its node decide, as far as they are known (not empty).
func (o *owners) owner(a netip.Addr, pod, node string) (c container, tenant string, ok bool) {
	found := o.having(a)
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
	tenant, ok = o.networks.Get(found[0].network)
	return found[0], tenant, ok
}

// onNode returns the tenant that owns an address on the node: the default one, or else the
// first by name; "" if nobody has it.
func (o *owners) onNode(a netip.Addr) string {
	best := ""
	for _, c := range o.having(a) {
		tenant, _ := o.networks.Get(c.network)
		if tenant == "" {
			continue
		}
		if best == "" || tenant == defaultTenant || best != defaultTenant && tenant < best {
			best = tenant
		}
	}
	return best
}
