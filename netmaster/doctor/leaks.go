package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/state/doctorapi"
)

// leaks finds ports without endpoint or container, and endpoints without port. What is being
// attached or detached at the moment is not meant: it has to be so in two readings.
var leaks = check{"leaks", func(f *Facts) (out []doctorapi.Finding) {
	for _, label := range f.labels() {
		out = append(out, judgePorts(f, label)...)
		out = append(out, judgeEndpoints(f, label)...)
	}
	return out
}}

func judgePorts(f *Facts, label string) (out []doctorapi.Finding) {
	for _, p := range f.Hosts[label].Switch.Ports {
		before, ok := portOf(f.Before[label], p.Endpoint)
		object := fmt.Sprintf("port %s of %s", p.Name, host(label))
		switch known := slices.Contains(f.Endpoints[label], p.Endpoint); {
		case !ok:
		case !known:
			out = append(out, doctorapi.Finding{
				Code: "port-leaked", Severity: doctorapi.Warning, Object: object, Text: "it is there for endpoint " + p.Endpoint + ", which netmaster does not know on this host",
				Do: "if its container is gone, delete it there: ovs-vsctl del-port " + p.Name,
			})
		case p.Gone && before.Gone:
			out = append(out, doctorapi.Finding{
				Code: "container-gone", Severity: doctorapi.Warning, Object: object, Text: "the container of endpoint " + p.Endpoint + " is gone, but its port and address are not free",
				Do: "see that the container's runtime has been told to remove it; it frees both",
			})
		case p.Error != "" && before.Error != "":
			out = append(out, doctorapi.Finding{
				Code: "port-broken", Severity: doctorapi.Error, Object: object, Text: "Open vSwitch cannot use the interface of endpoint " + p.Endpoint + ": " + p.Error,
				Do: "start the container again",
			})
		}
	}
	return out
}

func portOf(h agents.Facts, endpoint string) (doctorapi.Port, bool) {
	i := slices.IndexFunc(h.Switch.Ports, func(p doctorapi.Port) bool { return p.Endpoint == endpoint })
	if i < 0 {
		return doctorapi.Port{}, false
	}
	return h.Switch.Ports[i], true
}

func judgeEndpoints(f *Facts, label string) (out []doctorapi.Finding) {
	for _, id := range f.Endpoints[label] {
		_, here := portOf(f.Hosts[label], id)
		_, was := portOf(f.Before[label], id)
		if here || was || strings.HasSuffix(id, "-"+label) { // infra networks: the host itself is the endpoint
			continue
		}
		out = append(out, doctorapi.Finding{
			Code: "endpoint-without-port", Severity: doctorapi.Warning, Object: "endpoint " + id, Text: "it has an address, but no port on host " + label + ", where it should be",
			Do: "if its container is gone, see that the runtime has been told to remove it; it frees the address",
		})
	}
	return out
}
