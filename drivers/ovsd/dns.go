package ovsd

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/contiv/netplugin/drivers/ovsd/dnsns"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ovsdb"
)

// Queries of containers by UDP come over the OpenFlow channel. Those by TCP need a real
// TCP: each bridge has a port that leads into a network namespace of the agent's own,
// where a socket listens on every address there is. Nothing of the host is in the way
// there, and no address can clash. The namespace outlives the agent.

// dnsRate is how many queries per second a container may ask by UDP, unless it is
// configured.
const dnsRate = 1000

// dnsRole marks the ports that lead into the namespace.
const (
	roleKey = "contiv-role"
	dnsRole = "dns"
)

func (d *Driver) dnsSettings() ofnet.DNSSettings {
	if d.cfg.NameServer == nil {
		return ofnet.DNSSettings{}
	}
	return ofnet.DNSSettings{Rate: d.cfg.DNSRate, Port: dnsOFPort}
}

// query passes what a container asks on, with the tenant that the VRF is of.
func (d *Driver) query(q *ofnet.DNSQuery) {
	d.mu.Lock()
	tenant, ok := d.compiler.TenantOfVRF(q.VRF)
	d.mu.Unlock()
	if !ok {
		q.Pass()
		return
	}
	d.cfg.NameServer.Query(drivers.DNSQuery{Tenant: tenant, ToAgent: q.ToAgent, Message: q.Message, Answer: q.Answer, Pass: q.Pass})
}

// nameService is the DNS namespace; nil without a name server.
type nameService struct{ ns *dnsns.Namespace }

// openNameService makes the DNS namespace and its links, or finds those of the agent before.
func (d *Driver) openNameService() error {
	if d.cfg.NameServer == nil {
		return dnsns.Remove(d.cfg.dnsNamespace())
	}
	if d.dns.ns != nil {
		return nil
	}
	r, err := dnsns.Open(d.cfg.dnsNamespace())
	if err != nil {
		return fmt.Errorf("namespace for name queries by TCP: %w", err)
	}
	for _, s := range d.bridges {
		d.db.View(func(v ovsdb.View) { s.dnsPort = dnsPortOf(v, s.name) })
		if s.dnsPort != "" && r.Has(s.encap, s.dnsPort) {
			continue
		}
		// A new name: the switch would not notice another link of the old one.
		s.dnsPort = fmt.Sprintf("cdns%s%d", s.encap, s.round)
		if err := r.Join(s.encap, s.dnsPort, s.mtu()); err != nil {
			r.Close()
			return fmt.Errorf("port for name queries of bridge %s: %w", s.name, err)
		}
	}
	d.dns.ns = r
	return nil
}

// dnsPortOf is the name of a bridge's port into the namespace.
func dnsPortOf(v ovsdb.View, bridge string) (name string) {
	for _, p := range bridgePorts(v, bridge) {
		if p.row.Map("external_ids")[roleKey] == dnsRole {
			name = p.row.String("name")
		}
	}
	return name
}

// ensureDNSPorts puts the namespace's ports into the bridges, and takes those of earlier
// starts away.
func (d *Driver) ensureDNSPorts(ctx context.Context) error {
	for _, s := range d.bridges {
		var ops []ovsdb.Operation
		missing := s.dnsPort != ""
		d.db.View(func(v ovsdb.View) {
			for _, p := range bridgePorts(v, s.name) {
				switch name := p.row.String("name"); {
				case p.row.Map("external_ids")[roleKey] != dnsRole:
				case name == s.dnsPort:
					missing = false
				default:
					ops = append(ops, ovsdb.Mutate("Bridge", ovsdb.ByName(s.name), ovsdb.DeleteFrom("ports", ovsdb.Set{p.id})))
				}
			}
		})
		if missing {
			mark := ovsdb.StringMap(map[string]string{ownerKey: ownerMark, roleKey: dnsRole})
			ops = append(ops, addPort(s.name, "dns", ovsdb.Row{"name": s.dnsPort, "external_ids": mark},
				ovsdb.Row{"name": s.dnsPort, "ofport_request": dnsOFPort, "external_ids": mark})...)
		}
		if len(ops) == 0 {
			continue
		}
		if _, err := d.db.Transact(ctx, ops...); err != nil {
			return fmt.Errorf("port for name queries of bridge %s: %w", s.name, err)
		}
	}
	return nil
}

// serveStreams gives connections to the name server until ctx ends.
func (d *Driver) serveStreams(ctx context.Context) error {
	if d.dns.ns == nil {
		return nil
	}
	defer d.dns.ns.Close()
	stop := context.AfterFunc(ctx, func() { d.dns.ns.Listener.Close() })
	defer stop()
	var streams sync.WaitGroup
	defer streams.Wait()
	for {
		c, err := d.dns.ns.Listener.Accept()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("listen for name queries by TCP: %w", err)
		}
		tenant, ok := d.tenantOf(c.RemoteAddr())
		if !ok {
			c.Close()
			continue
		}
		streams.Go(func() { d.cfg.NameServer.Stream(ctx, tenant, c) })
	}
}

// tenantOf finds whose container an address in the namespace stands for.
func (d *Driver) tenantOf(a net.Addr) (tenant string, ok bool) {
	from, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return "", false
	}
	encap, port, ok := ofnet.DNSClient(from.Addr().Unmap())
	if !ok {
		return "", false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, number := range d.compiler.Ports {
		if e, known := d.compiler.Endpoints[id]; known && number.OpenFlow == port && e.Network.Encap == encap {
			return e.Network.Tenant, true
		}
	}
	return "", false
}
