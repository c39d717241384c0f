package ovsd

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/appctl"
	"github.com/contiv/netplugin/ovsdb"
	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Examine tells what the switch of this host is like, as far as it answers before ctx ends;
// what could not be found out is in Errors. It changes nothing.
func (d *Driver) Examine(ctx context.Context) doctorapi.Switch {
	out := doctorapi.Switch{Errors: []string{}, Ports: d.examinePorts()}
	note := func(err error) {
		if err != nil {
			out.Errors = append(out.Errors, err.Error())
		}
	}
	d.db.View(func(v ovsdb.View) {
		v.Each("Open_vSwitch", func(_ ovsdb.UUID, row ovsdb.Row) { out.Version = row.String("ovs_version") })
	})
	out.Datapath = "system"
	if !d.kernelBridge(VXLANBridge) {
		out.Datapath = "netdev"
	}
	for _, encap := range []ofnet.Encap{ofnet.VXLAN, ofnet.VLAN} {
		b, err := d.examineBridge(ctx, d.bridges[encap])
		out.Bridges = append(out.Bridges, b)
		note(err)
	}
	var err error
	out.Tunnels, err = d.examineTunnels(ctx)
	note(err)
	out.Connections, err = d.connections(ctx, out.Datapath)
	note(err)
	return out
}

func (d *Driver) examineBridge(ctx context.Context, s *bridge) (doctorapi.Bridge, error) {
	st := s.sw.Status()
	b := doctorapi.Bridge{
		Name: s.name, Connected: st.Connected, Error: st.Error, Pending: st.Pending, Refused: st.Refused,
		Restarts: st.Restarts, Restarted: st.RestartedAt, Drops: map[string]uint64{},
	}
	d.mu.Lock()
	p := d.pipeline(s)
	d.mu.Unlock()
	if p == nil || !st.Connected {
		return b, nil
	}
	drops, err := s.sw.Drops(ctx, p.Tables())
	if err != nil {
		return b, err
	}
	b.Drops = drops
	if st.Pending > 0 {
		return b, nil
	}
	diff, err := s.sw.Difference(ctx)
	b.Foreign, b.Missing = diff.Foreign, diff.Missing
	return b, err
}

// examinePorts lists the ports of endpoints, with what is wrong with them.
func (d *Driver) examinePorts() []doctorapi.Port {
	ports := []doctorapi.Port{}
	d.db.View(func(v ovsdb.View) {
		for _, s := range d.bridges {
			for _, p := range bridgePorts(v, s.name) {
				a, ok := asAttachment(p.row, s)
				if !ok {
					continue
				}
				port := doctorapi.Port{Name: a.Port.OVSName, Endpoint: a.EndpointID, Container: a.ContainerID, MTU: linkMTUOf(a.Port.OVSName), Tunnelled: s.encap == ofnet.VXLAN, Error: p.row.String("error")}
				if a.Netns != "" {
					_, err := os.Stat(a.Netns)
					port.Gone = os.IsNotExist(err)
				}
				ports = append(ports, port)
			}
		}
	})
	slices.SortFunc(ports, func(a, b doctorapi.Port) int { return cmp.Compare(a.Name, b.Name) })
	return ports
}

func (d *Driver) examineTunnels(ctx context.Context) (doctorapi.Tunnels, error) {
	out := doctorapi.Tunnels{VTEP: d.cfg.VTEP, MTU: TunnelMTU(d.cfg.VTEP), Peers: []doctorapi.Peer{}}
	d.mu.Lock()
	for _, n := range d.compiler.Networks {
		if n.Encap == ofnet.VXLAN {
			out.Networks++
		}
	}
	d.mu.Unlock()
	counts, err := d.bridges[ofnet.VXLAN].sw.TunnelCounts(ctx)
	for vtep, n := range counts {
		out.Peers = append(out.Peers, doctorapi.Peer{VTEP: vtep, Packets: n.Packets, Bytes: n.Bytes})
	}
	slices.SortFunc(out.Peers, func(a, b doctorapi.Peer) int { return a.VTEP.Compare(b.VTEP) })
	return out, err
}

// connections asks the datapath how many connections it tracks.
func (d *Driver) connections(ctx context.Context, datapath string) (c doctorapi.Connections, err error) {
	socket, err := appctl.Find(ctx, d.cfg.runDir(), "ovs-vswitchd")
	if err != nil {
		return c, fmt.Errorf("count connections: %w", err)
	}
	for _, q := range []struct {
		command string
		into    *uint64
	}{{"dpctl/ct-get-nconns", &c.Tracked}, {"dpctl/ct-get-maxconns", &c.Limit}} {
		text, err := appctl.Call(ctx, socket, q.command, datapath+"@ovs-"+datapath)
		if datapath == "system" && err != nil { // the kernel's table is the host's
			text, err = readKernelCount(q.command)
		}
		if err != nil {
			return c, fmt.Errorf("count connections: %w", err)
		}
		if *q.into, err = strconv.ParseUint(strings.TrimSpace(text), 10, 64); err != nil {
			return c, fmt.Errorf("count connections: %s: %w", q.command, err)
		}
	}
	return c, nil
}

// readKernelCount reads from the kernel what its datapath does not tell.
func readKernelCount(command string) (string, error) {
	name := "/proc/sys/net/netfilter/nf_conntrack_max"
	if strings.HasSuffix(command, "nconns") {
		name = "/proc/sys/net/netfilter/nf_conntrack_count"
	}
	text, err := os.ReadFile(name)
	return string(text), err
}

// Probe sends frames that belong to no network to hosts, through the tunnels. A host that is
// not known, or a size that does not fit, is Invalid.
func (d *Driver) Probe(ctx context.Context, p doctorapi.Probe) (sent int, err error) {
	mtu := TunnelMTU(d.cfg.VTEP)
	switch {
	case len(p.Peers) > doctorapi.MaxPeers:
		return 0, errs.New(errs.Invalid, "probe: %d peers, expected at most %d", len(p.Peers), doctorapi.MaxPeers)
	case p.Count < 1 || p.Count > doctorapi.MaxCount:
		return 0, errs.New(errs.Invalid, "probe: %d frames, expected 1 to %d", p.Count, doctorapi.MaxCount)
	case p.Size < doctorapi.MinSize || p.Size > mtu:
		return 0, errs.New(errs.Invalid, "probe: %d bytes, expected %d to %d", p.Size, doctorapi.MinSize, mtu)
	}
	var frames []of.Message
	for _, vtep := range p.Peers {
		if !d.isPeer(vtep) {
			return 0, errs.New(errs.Invalid, "probe: %v is the tunnel address of no host that is known here", vtep)
		}
		for range p.Count {
			frames = append(frames, ofnet.TunnelProbe(tunnelOFPort, vtep, p.Size))
		}
	}
	if err := d.bridges[ofnet.VXLAN].sw.Inject(ctx, frames); err != nil {
		return 0, fmt.Errorf("probe: %w", err)
	}
	return len(frames), nil
}

func (d *Driver) isPeer(vtep netip.Addr) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.compiler.IsPeer(vtep.String())
}
