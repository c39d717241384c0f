package ovsd

// proxyState is what Inspect shows of services.
type proxyState struct {
	Catalogue struct {
		SvcMap  map[string]serviceState
		ProvMap map[string]providersState
	}
}

type serviceState struct {
	IpAddress string // name of the original
	Addresses []string
	Ports     []portState
}

type portState struct {
	Protocol          string
	SvcPort, ProvPort uint16
}

type providersState struct{ Providers map[string]bool }

var protocolNames = map[uint8]string{6: "TCP", 17: "UDP", 132: "SCTP"}

func (d *Driver) proxyState() (p proxyState) {
	p.Catalogue.SvcMap, p.Catalogue.ProvMap = map[string]serviceState{}, map[string]providersState{}
	for id, s := range d.compiler.Services {
		var out serviceState
		for i, vip := range s.VIPs {
			if i == 0 {
				out.IpAddress = vip.String()
			}
			out.Addresses = append(out.Addresses, vip.String())
		}
		all := map[string]bool{}
		for _, port := range s.Ports {
			shown := portState{Protocol: protocolNames[port.Proto], SvcPort: port.Port}
			for _, v := range port.Providers {
				shown.ProvPort = v.Addr.Port()
				all[v.Addr.Addr().String()] = !v.Draining
			}
			out.Ports = append(out.Ports, shown)
		}
		p.Catalogue.SvcMap[id], p.Catalogue.ProvMap[id] = out, providersState{all}
	}
	return p
}
