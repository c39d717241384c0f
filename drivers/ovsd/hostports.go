package ovsd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/contiv/netplugin/drivers/ovsd/compiler"
	"github.com/contiv/netplugin/drivers/ovsd/veth"
	"github.com/contiv/netplugin/ofnet"

	"github.com/contiv/netplugin/ovsdb"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx"
)

// firstInfraOFPort is the lowest number that infra ports request, above those of containers
// and our other ports.
const firstInfraOFPort = 65050

// The host's own ports. Flows forward to them, and the switch never floods to them: their
// VLANs belong to no network.
const (
	hostPortVXLAN = "contivh0"
	hostPortVLAN  = "contivhv0"

	hostTagVXLAN = 2
	hostTagVLAN  = 4095 // reserved (IEEE 802.1Q table 9-2)
)

// ContainerLinks names the host's own ports, which connect it with containers.
func ContainerLinks() []string { return []string{hostPortVXLAN, hostPortVLAN} }

// gatewayNetwork is the infra network through which the host reaches the containers of all
// hosts and the services.
const gatewayNetwork = "contivh1"

// hostName is the name of the host's port in a bridge.
func (b *bridge) hostName() string {
	if b.encap == ofnet.VLAN {
		return hostPortVLAN
	}
	return hostPortVXLAN
}

// hostPort is an internal port of the host in a bridge.
type hostPort struct {
	bridge, endpoint string // value of endpointKey
	tag, number      int    // VLAN; requested OpenFlow port
}

// wantedHostPorts are the host's own port in each bridge, and those of infra networks. The
// caller holds mu.
func (d *Driver) wantedHostPorts() map[string]hostPort {
	out := map[string]hostPort{
		hostPortVXLAN: {VXLANBridge, compiler.HostEndpointVXLAN, hostTagVXLAN, hostOFPort},
		hostPortVLAN:  {VLANBridge, compiler.HostEndpointVLAN, hostTagVLAN, hostOFPort},
	}
	for _, p := range d.compiler.InfraPorts() {
		if s := d.bridges[p.Endpoint.Network.Encap]; s != nil {
			out[p.Name] = hostPort{s.name, p.Endpoint.ID, int(p.Endpoint.Network.Tag), firstInfraOFPort + p.Number}
		}
	}
	return out
}

// foundHostPort is a port of the host in the database.
type foundHostPort struct {
	hostPort
	port ovsdb.UUID
}

// hostPorts lists the host's existing ports, by name.
func hostPorts(v ovsdb.View) map[string]foundHostPort {
	out := map[string]foundHostPort{}
	for _, bridge := range []string{VXLANBridge, VLANBridge} {
		for _, p := range bridgePorts(v, bridge) {
			ids := p.row.Map("external_ids")
			if ids[ownerKey] != ownerMark || ids[endpointKey] == "" || p.row.String("type") != "internal" {
				continue
			}
			row, _ := v.Row("Port", p.id)
			tag, _ := row.Int("tag")
			out[p.row.String("name")] = foundHostPort{hostPort{bridge: bridge, endpoint: ids[endpointKey], tag: int(tag)}, p.id}
		}
	}
	return out
}

// staleHostPorts reports whether ensureHostPorts has something to do.
func staleHostPorts(want map[string]hostPort, have map[string]foundHostPort, complete bool) bool {
	for name, w := range want {
		if h, ok := have[name]; !ok || !h.is(w) {
			return true
		}
	}
	return complete && len(have) > len(want)
}

func (p foundHostPort) is(w hostPort) bool {
	return p.bridge == w.bridge && p.endpoint == w.endpoint && p.tag == w.tag
}

// ensureHostPorts creates and removes ports of the host as wanted. Ports that nobody has
// declared are removed only after the initial sync.
func (d *Driver) ensureHostPorts(ctx context.Context) error {
	d.mu.Lock()
	want, complete := d.wantedHostPorts(), d.compiler.Synced
	d.mu.Unlock()
	var have map[string]foundHostPort
	d.db.View(func(v ovsdb.View) { have = hostPorts(v) })
	var failed []error
	for name, h := range have {
		if w, ok := want[name]; ok && h.is(w) || !ok && !complete {
			continue
		}
		if err := d.removePorts(ctx, h.bridge, h.port); err != nil {
			failed = append(failed, fmt.Errorf("remove the host's port %s: %w", name, err))
		}
		delete(have, name)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, ok := have[name]; ok {
			continue
		}
		if err := d.addHostPort(ctx, name, want[name]); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (d *Driver) addHostPort(ctx context.Context, name string, p hostPort) error {
	if err := netx.CheckLinkName(name); err != nil {
		return fmt.Errorf("infra network %q names an interface of the host: %w", name, err)
	}
	if _, _, ours := d.find("Interface", "name", name); !ours && veth.Exists(name) {
		return errs.New(errs.Conflict, "the host's port %s: this host has another interface of that name; rename it, or the network", name)
	}
	mark := ovsdb.StringMap(map[string]string{ownerKey: ownerMark, endpointKey: p.endpoint})
	_, err := d.db.Transact(ctx, addPort(p.bridge, "h",
		ovsdb.Row{"name": name, "vlan_mode": "access", "tag": p.tag, "external_ids": mark},
		ovsdb.Row{"name": name, "type": "internal", "ofport_request": p.number, "external_ids": mark})...)
	if err != nil {
		return fmt.Errorf("add the host's port %s: %w", name, err)
	}
	d.cfg.Log.WithField("port", name).WithField("bridge", p.bridge).Info("the host has a port")
	return nil
}
