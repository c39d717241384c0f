package ofnet

import (
	"encoding/binary"
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// DNSSettings configure how containers reach the agent's name server.
type DNSSettings struct {
	// Rate limits a container's queries by UDP per second; queries above it are dropped.
	// 0: there is no name server.
	Rate uint32
	// Port is the OpenFlow port behind which queries by TCP are answered; 0: they are
	// not.
	Port uint32
}

// DNSMAC is the address behind DNSSettings.Port.
var DNSMAC = MAC{0x02, 0x00, 0x00, 0x00, 0x00, 0x35}

// DNSClients4 and DNSClients6 are the ranges of addresses that stand for containers where
// TCP queries are answered, because tenants may use equal addresses: the benchmark range
// (RFC 2544), which no network carries, and a random unique local prefix (RFC 4193).
var (
	DNSClients4 = netip.MustParsePrefix("198.18.0.0/15")
	DNSClients6 = netip.MustParsePrefix("fd63:6f6e:7469:7600::/64")
)

// DNSClient4 is the address in DNSClients4 for the container at a port, up to 65535, of the
// bridge of encap.
func DNSClient4(encap Encap, port uint32) netip.Addr {
	a := DNSClients4.Addr().As4()
	a[1] += byte(encap - VLAN)
	binary.BigEndian.PutUint16(a[2:], uint16(port))
	return netip.AddrFrom4(a)
}

// DNSClient6 is the same in DNSClients6.
func DNSClient6(encap Encap, port uint32) netip.Addr {
	a := DNSClients6.Addr().As16()
	a[8] = byte(encap)
	binary.BigEndian.PutUint32(a[12:], port)
	return netip.AddrFrom16(a)
}

// DNSClient returns the container that an address stands for.
func DNSClient(a netip.Addr) (encap Encap, port uint32, ok bool) {
	b := a.AsSlice()
	switch {
	case DNSClients4.Contains(a):
		encap, port = VLAN+Encap(b[1]-DNSClients4.Addr().As4()[1]), uint32(binary.BigEndian.Uint16(b[2:]))
	case DNSClients6.Contains(a):
		encap, port = Encap(b[8]), binary.BigEndian.Uint32(b[12:])
	}
	return encap, port, port != 0
}

// Meters of queries. A switch may have as few as 65535 meters; those below are used for
// endpoints' rates. Ports that share a meter are 2048 apart.
const firstDNSMeter, dnsMeters = 0xf001, 2048

func dnsMeter(port uint32) uint32 { return firstDNSMeter + port%dnsMeters }

func (s DNSSettings) meters(e Endpoint) []of.Meter {
	if s.Rate == 0 || !e.Local() {
		return nil
	}
	return []of.Meter{{ID: dnsMeter(e.Port), Flags: of.MeterPktps | of.MeterBurst, Bands: of.NewBands().Drop(s.Rate, s.Rate)}}
}

// dns passes the queries of this host's containers to the agent, whatever server they
// are for. The packet waits there: it is answered, or goes on as if nothing had been.
// The gateways of routed networks and LinkRouter4 are name servers themselves.
//
//	dns        a query? is it for one of our addresses?
//	dns-serve  by UDP: to the agent; by TCP for our addresses: to its port
type dns struct{}

const (
	dnsPort     = 53    // RFC 1035 section 4.2
	dnsUserdata = "dns" // of packet-ins
	dnsToAgent  = 1     // in regScratch: the query is for one of our addresses
)

func (dns) id() uint8       { return featureDNS }
func (dns) tables() []table { return []table{tableDNS, tableDNSServe} }

// query matches datagrams to port 53, unless they come in fragments.
func query(m of.Match) of.Match {
	return m.IPProto(of.ProtoUDP).UDPDst(dnsPort).With(of.FieldIPFrag.Is(0))
}

func (f dns) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case Network:
		return part{rows: f.network(p, o)}
	case Endpoint:
		return part{rows: f.endpoint(p, o), meters: p.set.DNS.meters(o)}
	}
	return part{}
}

func (f dns) base(p *Pipeline) []row {
	serve := goTo(p.to(tableDNSServe))
	rows := f.server(p, of.NewMatch(), LinkRouter4)
	for _, family := range families {
		rows = append(rows, row{tableDNS, prioGeneral, query(family), serve})
	}
	return append(rows,
		row{tableDNS, prioMiss, of.NewMatch(), goTo(p.to(tableService))},
		row{tableDNSServe, prioMiss, of.NewMatch(), goTo(p.to(tableService))})
}

// server makes an address that of a name server.
func (dns) server(p *Pipeline, m of.Match, a netip.Addr) []row {
	m = m.Dst(host(a))
	do := applyGoto(of.NewActions().SetField(regScratch.is(dnsToAgent)), p.to(tableDNSServe))
	rows := []row{{tableDNS, prioNormal, query(m), do}}
	if p.set.DNS.Port != 0 && !DNSClients4.Contains(a) && !DNSClients6.Contains(a) {
		rows = append(rows, row{tableDNS, prioNormal, m.IPProto(of.ProtoTCP).TCPDst(dnsPort), do})
	}
	return rows
}

func (f dns) network(p *Pipeline, n Network) []row {
	if !p.set.Routing { // the gateway is not ours
		return nil
	}
	var rows []row
	for _, a := range []netip.Addr{n.Gateway4, n.Gateway6} {
		if a.IsValid() {
			rows = append(rows, f.server(p, of.NewMatch().With(regVRF.is(uint32(n.VRF))), a)...)
		}
	}
	return rows
}

func (f dns) endpoint(p *Pipeline, e Endpoint) []row {
	if !e.Local() {
		return nil
	}
	ask := of.NewInstructions().Meter(dnsMeter(e.Port)).
		Apply(of.NewActions().Controller(of.Controller{Pause: true, Userdata: []byte(dnsUserdata)})).Goto(p.to(tableService))
	from := of.NewMatch().InPort(e.Port)
	var rows []row
	for _, family := range []of.Match{from.IP(), from.IPv6()} {
		rows = append(rows, row{tableDNSServe, prioNormal, family.IPProto(of.ProtoUDP), ask})
	}
	if p.set.DNS.Port == 0 {
		return rows
	}
	if e.IPv4.IsValid() {
		rows = append(rows, f.stream(p, e, e.IPv4, DNSClient4(e.Encap, e.Port), of.FieldIPv4Src, of.FieldIPv4Dst)...)
	}
	if e.IPv6.IsValid() {
		rows = append(rows, f.stream(p, e, e.IPv6, DNSClient6(e.Encap, e.Port), of.FieldIPv6Src, of.FieldIPv6Dst)...)
	}
	return rows
}

// stream sends the connections of one address to the agent's port, where client stands
// for it, and back. The address of the server stays what it is.
func (dns) stream(p *Pipeline, e Endpoint, own, client netip.Addr, src, dst of.Field) []row {
	there := of.NewActions().SetField(src.IsAddr(client)).SetEthDst(DNSMAC).Output(p.set.DNS.Port)
	back := of.NewActions().SetField(dst.IsAddr(own)).SetEthSrc(RouterMAC).SetEthDst(e.MAC).Output(e.Port)
	tcp := func(port uint32) of.Match { return of.NewMatch().InPort(port).IPProto(of.ProtoTCP) }
	return []row{
		{tableDNSServe, prioNormal, tcp(e.Port).Src(host(own)), apply(there)},
		{tableClassify, prioNormal, tcp(p.set.DNS.Port).Dst(host(client)).With(of.FieldTCPSrc.Is(dnsPort)), apply(back)},
	}
}
