package ovsd

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/ovsd/conntable"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/appctl"
)

var _ drivers.Connections = (*Driver)(nil)

// Connections reads the connection table of the datapath.
func (d *Driver) Connections(ctx context.Context, yield func(*drivers.Connection)) error {
	l, err := findLimiter(ctx, d.cfg, d.kernelBridge(VXLANBridge))
	if err != nil {
		return err
	}
	zones := d.zones()
	var e conntable.Entry
	var c drivers.Connection
	return appctl.Lines(ctx, l.socket, "dpctl/dump-conntrack", []string{"-s", l.datapath}, func(line []byte) {
		if conntable.Parse(string(line), &e) && zones.connection(&e, &c) {
			yield(&c)
		}
	})
}

// zone is what a conntrack zone is for.
type zone struct {
	vrf    uint16
	tenant string
	kind   zoneKind
}

type zoneKind uint8

const (
	zoneRules zoneKind = iota
	zoneHost
	zoneService
)

type zones map[uint16]zone

func (d *Driver) zones() zones {
	d.mu.Lock()
	defer d.mu.Unlock()
	z := make(zones, 3*len(d.compiler.VRFs))
	for tenant, n := range d.compiler.VRFs {
		for kind, number := range ofnet.Zones(n) {
			z[number] = zone{n, tenant, zoneKind(kind)}
		}
	}
	return z
}

// connection converts an entry. It reports false for what is not of a container, or denied.
func (z zones) connection(e *conntable.Entry, c *drivers.Connection) bool {
	in, ours := z[e.Zone]
	if !ours {
		return false
	}
	o, r := &e.Orig, &e.Reply
	src := netip.AddrPortFrom(o.Src, o.SrcPort)
	*c = drivers.Connection{
		VRF: in.vrf, Tenant: in.tenant, Proto: e.Proto, Src: src, Dst: netip.AddrPortFrom(r.Src, r.SrcPort),
		Closed: e.Closed(), Packets: o.Packets + r.Packets, Bytes: o.Bytes + r.Bytes,
	}
	if ofnet.IsICMP(e.Proto) {
		c.ICMP = uint16(o.Type)<<8 | uint16(o.Code)
		c.Src = netip.AddrPortFrom(o.Src, o.ID)
	}
	switch in.kind {
	case zoneRules:
		if e.Mark&1 != 0 { // denied when the rules changed: see ofnet
			return false
		}
		c.Decided, c.Rule, c.Out, c.In = true, e.Label(0), e.Label(32), e.Label(64)
	case zoneService:
		// Behind the translation the sender's port may be another one.
		if !ofnet.IsICMP(e.Proto) {
			c.Src = netip.AddrPortFrom(r.Dst, r.DstPort)
		}
		if r.Src != o.Dst || r.SrcPort != o.DstPort && !ofnet.IsICMP(e.Proto) {
			c.Service = netip.AddrPortFrom(o.Dst, o.DstPort)
		}
	}
	return true
}

// Withheld reads the meters of the bridges.
func (d *Driver) Withheld(ctx context.Context) (map[string]uint64, error) {
	out := map[string]uint64{}
	for _, b := range d.bridges {
		counts, err := b.sw.Withheld(ctx)
		if err != nil {
			return nil, err
		}
		for meter, n := range counts {
			out[fmt.Sprintf("%s meter %d", b.name, meter)] = n
		}
	}
	return out, nil
}

// denied passes a denied packet on, with the names of what the switch knows by numbers.
func (d *Driver) denied(encap ofnet.Encap) func(*ofnet.DeniedPacket) {
	return func(p *ofnet.DeniedPacket) {
		out := drivers.Denied{DeniedPacket: *p}
		d.mu.Lock()
		out.Tenant, _ = d.compiler.TenantOfVRF(p.VRF)
		out.Endpoint = d.endpointAt(encap, p.Port)
		if p.Frontend != 0 {
			if f, ok := d.compiler.Frontends()[p.Frontend]; ok {
				out.Service, out.Asked = f.Service, f.Addr
			}
		}
		d.mu.Unlock()
		d.cfg.Denied(out)
	}
}

// endpointAt finds the endpoint of this host at a port. The caller holds mu.
func (d *Driver) endpointAt(encap ofnet.Encap, port uint32) string {
	for id, n := range d.compiler.Ports {
		if n.OpenFlow != port {
			continue
		}
		if e, ok := d.compiler.Endpoints[id]; ok && e.Network.Encap == encap {
			return id
		}
	}
	return ""
}
