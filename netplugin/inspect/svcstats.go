package inspect

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/contiv/netplugin/drivers"
	of "github.com/contiv/netplugin/libopenflow"
)

// The statistics of services, by address of the client. What the original has and never
// fills stays: tools read it.

type (
	endpointStats struct {
		EndpointIP string
		VrfName    string
		PortStats  exchanged
		SvcStats   map[string]*svcStats // by address of the service
	}
	svcStats struct {
		ServiceIP, ServiceVRF       string
		Protocol, SvcPort, ProvPort string // of one of its ports
		SvcStats                    exchanged
		ProvStats                   map[string]*provStats // by address of the provider
	}
	provStats struct {
		ProviderIP, ServiceIP, ServiceVrf string
		exchanged
	}
	exchanged struct{ PacketsIn, BytesIn, PacketsOut, BytesOut uint64 }
)

var protocolNames = map[uint8]string{of.ProtoTCP: "TCP", of.ProtoUDP: "UDP", of.ProtoSCTP: "SCTP"}

// serviceStats sums counts up for GET /svcstats.
func serviceStats(counts []drivers.ServiceCount) map[string]*endpointStats {
	slices.SortFunc(counts, func(a, b drivers.ServiceCount) int {
		return cmp.Or(a.VIP.Compare(b.VIP), cmp.Compare(a.Proto, b.Proto), a.Provider.Compare(b.Provider), a.Client.Compare(b.Client))
	})
	all := map[string]*endpointStats{}
	for _, c := range counts {
		client, vip, provider := c.Client.String(), c.VIP.Addr().String(), c.Provider.Addr().String()
		ep := all[client]
		if ep == nil {
			ep = &endpointStats{EndpointIP: client, SvcStats: map[string]*svcStats{}}
			all[client] = ep
		}
		svc := ep.SvcStats[vip]
		if svc == nil {
			svc = &svcStats{
				ServiceIP: vip, Protocol: protocolNames[c.Proto], SvcPort: strconv.Itoa(int(c.VIP.Port())),
				ProvPort: strconv.Itoa(int(c.Provider.Port())), ProvStats: map[string]*provStats{},
			}
			ep.SvcStats[vip] = svc
		}
		p := svc.ProvStats[provider]
		if p == nil {
			p = &provStats{ProviderIP: provider}
			svc.ProvStats[provider] = p
		}
		p.PacketsIn += c.PacketsIn
		p.BytesIn += c.BytesIn
		p.PacketsOut += c.PacketsOut
		p.BytesOut += c.BytesOut
	}
	return all
}
