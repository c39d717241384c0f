package nameserver

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/objdb"
)

// State is what inspection shows of a Server.
type State struct {
	ServiceQueue  int                 `json:"serviceQueue"`  // always 0: nothing waits
	EndpointQueue int                 `json:"endpointQueue"` // always 0
	Records       map[string]Records  `json:"dnsRecords"`    // by tenant
	Stats         map[string]Counters `json:"stats"`         // by tenant
}

// Records are the names of a tenant, each with its addresses as "ipv4:… ipv6:…", where
// <nil> is none.
type Records struct {
	Services       map[string][]string `json:"services,omitempty"`
	CommonNames    map[string][]string `json:"commonNames,omitempty"`
	EndpointGroups map[string][]string `json:"endpointGroups,omitempty"`
	Endpoints      map[string][]string `json:"endpoints,omitempty"` // by container id
}

// Inspect returns everything the Server knows.
func (s *Server) Inspect() any {
	st := State{Records: s.names.inspect()}
	s.metrics.mu.Lock()
	defer s.metrics.mu.Unlock()
	st.Stats = maps.Clone(s.metrics.byTenant)
	return st
}

func (n *Names) inspect() map[string]Records {
	n.mu.RLock()
	defer n.mu.RUnlock()
	out := map[string]Records{}
	for _, all := range []*objdb.Mirror[entry]{&n.endpoints, &n.services} {
		for _, e := range all.All() {
			if tenant := n.tenantOf(e); tenant != "" {
				show(out, tenant, e)
			}
		}
	}
	for _, r := range out {
		for _, table := range []map[string][]string{r.Services, r.CommonNames, r.EndpointGroups, r.Endpoints} {
			for _, list := range table {
				slices.Sort(list)
			}
		}
	}
	return out
}

// show adds what one record contributes to the names of a tenant.
func show(out map[string]Records, tenant string, e entry) {
	r, ok := out[tenant]
	if !ok {
		r = Records{map[string][]string{}, map[string][]string{}, map[string][]string{}, map[string][]string{}}
		out[tenant] = r
	}
	text := fmt.Sprintf("ipv4:%s ipv6:%s", orNil(e.v4), orNil(e.v6))
	tables := [numKinds]map[string][]string{service: r.Services, group: r.EndpointGroups, container: r.CommonNames, containerID: r.Endpoints}
	for k, names := range e.names {
		for i, name := range names {
			if kind(k) == containerID && i > 0 {
				break // the same once more
			}
			tables[k][name] = append(tables[k][name], text)
		}
	}
}

func orNil(a netip.Addr) string {
	if !a.IsValid() {
		return "<nil>"
	}
	return a.String()
}
