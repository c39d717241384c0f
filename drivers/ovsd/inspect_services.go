package ovsd

// proxyPicture is what Inspect shows of services.
type proxyPicture struct {
	Catalogue struct {
		SvcMap  map[string]servicePicture
		ProvMap map[string]providersPicture
	}
}

type servicePicture struct {
	IpAddress string // outward name
	Addresses []string
	Ports     []portPicture
}

type portPicture struct {
	Protocol          string
	SvcPort, ProvPort uint16
}

type providersPicture struct{ Providers map[string]bool }

var protocolNames = map[uint8]string{6: "TCP", 17: "UDP", 132: "SCTP"}

func (d *Driver) proxyPicture() (p proxyPicture) {
	p.Catalogue.SvcMap, p.Catalogue.ProvMap = map[string]servicePicture{}, map[string]providersPicture{}
	for id, s := range d.services.declared {
		var out servicePicture
		for i, vip := range s.VIPs {
			if i == 0 {
				out.IpAddress = vip.String()
			}
			out.Addresses = append(out.Addresses, vip.String())
		}
		all := map[string]bool{}
		for _, port := range s.Ports {
			shown := portPicture{Protocol: protocolNames[port.Proto], SvcPort: port.Port}
			for _, v := range port.Providers {
				shown.ProvPort = v.Addr.Port()
				all[v.Addr.Addr().String()] = !v.Draining
			}
			out.Ports = append(out.Ports, shown)
		}
		p.Catalogue.SvcMap[id], p.Catalogue.ProvMap[id] = out, providersPicture{all}
	}
	return p
}
