package nameserver

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"github.com/contiv/netplugin/state"
)

// maxLabel is the longest part of a name between dots (RFC 1035 section 2.3.4). Of an id
// that is longer the first characters are taken, as many as Docker shows, and makes the
// host name of a container.
const maxLabel, shortID = 63, 12

// entry is what one record contributes.
type entry struct {
	tenant  string // as far as the record alone tells
	network string // id; of endpoints
	v4, v6  netip.Addr
	names   [numKinds][]string
	host    string // the name of its addresses
}

// ambiguous reports whether the id of an endpoint's network does not tell its tenant.
func (e entry) ambiguous() bool { return strings.Count(e.network, ".") > 1 }

// readNetwork reads the tenant of a network.
func readNetwork(value []byte) (tenant string, err error) {
	var rec state.Network
	err = json.Unmarshal(value, &rec)
	return rec.Tenant, err
}

func readEndpoint(value []byte) (entry, error) {
	var rec state.Endpoint
	if err := json.Unmarshal(value, &rec); err != nil {
		return entry{}, err
	}
	e := entry{network: rec.NetID}
	_, e.tenant = state.SplitNetworkID(rec.NetID)
	e.v4, _ = netip.ParseAddr(rec.IPAddress) // none, or one that no flow leads to either
	e.v6, _ = netip.ParseAddr(rec.IPv6Address)
	grp, _, _ := strings.Cut(rec.EndpointGroupKey, ":")
	e.put(group, grp)
	// Docker writes a slash before names.
	e.put(container, strings.TrimPrefix(rec.EPCommonName, "/"))
	id := cmp.Or(rec.ContainerID, rec.EndpointID)
	if len(id) > maxLabel { // a whole id of a runtime is too long for a label
		id = id[:shortID]
	}
	e.put(containerID, id)
	if rec.EndpointID != rec.ContainerID && len(rec.EndpointID) <= maxLabel && id != rec.EndpointID {
		e.put(containerID, rec.EndpointID)
	}
	for _, names := range [][]string{e.names[container], e.names[containerID]} {
		if e.host == "" && len(names) > 0 {
			e.host = names[0]
		}
	}
	return e, nil
}

func readService(value []byte) (entry, error) {
	var rec state.ServiceLB
	if err := json.Unmarshal(value, &rec); err != nil {
		return entry{}, err
	}
	e := entry{tenant: rec.Tenant}
	e.v4, _ = netip.ParseAddr(rec.IPAddress)
	e.v6, _ = netip.ParseAddr(rec.IPv6Address)
	e.put(service, rec.ServiceName)
	e.host = strings.ToLower(rec.ServiceName)
	return e, nil
}

// put adds a name, if it can be asked for.
func (e *entry) put(k kind, name string) {
	if _, ok := dns.IsDomainName(name); ok && name != "" && name != "." {
		e.names[k] = append(e.names[k], strings.ToLower(name))
	}
}
