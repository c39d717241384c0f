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

// Containers' queries by UDP arrive over the OpenFlow channel. Queries by TCP need a TCP
// stack: each bridge has a port into the DNS namespace, where a socket listens on every
// address. The host's own services and firewall do not interfere there, and addresses
// cannot conflict. The namespace outlives the agent.

// dnsRate is the default limit of a container's queries per second by UDP.
const dnsRate = 1000

// dnsRole marks the ports of the DNS namespace.
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

// query passes a container's query to the name server, with the tenant of its VRF.
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

// openNameService creates the DNS namespace and its links, or finds those of an earlier
// agent.
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
		// A new name: the switch would not notice that another link has the old one.
		s.dnsPort = fmt.Sprintf("cdns%s%d", s.encap, s.round)
		if err := r.Join(s.encap, s.dnsPort, s.mtu()); err != nil {
			r.Close()
			return fmt.Errorf("port for name queries of bridge %s: %w", s.name, err)
		}
	}
	d.dns.ns = r
	return nil
}

// dnsPortOf is the name of a bridge's port into the DNS namespace.
func dnsPortOf(v ovsdb.View, bridge string) (name string) {
	for _, p := range bridgePorts(v, bridge) {
		if p.row.Map("external_ids")[roleKey] == dnsRole {
			name = p.row.String("name")
		}
	}
	return name
}

// ensureDNSPorts adds the DNS namespace's ports to the bridges, and removes those of
// earlier starts.
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

// serveStreams passes TCP connections to the name server until ctx ends.
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

// tenantOf returns the tenant of the container that an address in the DNS namespace stands
// for.
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
