package main

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v3"
	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/drivers/ovsd"
	"github.com/contiv/netplugin/netplugin/agent"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/cliconf"
)

// reachOptions say what of the control plane containers reach.
type reachOptions struct {
	open, closed string
}

func (o *reachOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "container-reach", Destination: &o.open, Sources: env.Var("CONTAINER_REACH"),
			Usage: "comma-separated `list` of control-plane ports of hosts that containers of this host can reach: PORT or FIRST-LAST, with /tcp or /udp for one protocol; all for everything except tunnels",
		},
		&cli.StringFlag{
			Name: "control-ports", Destination: &o.closed, Sources: env.Var("CONTROL_PORTS"),
			Usage: "comma-separated `list` of further ports of hosts that containers of this host cannot reach; same syntax as --container-reach",
		},
	}
}

const (
	tcp = 6
	udp = 17
)

// controlPorts are the usual ports of the control plane: of etcd, of Consul, of Open
// vSwitch, and of the daemons.
var controlPorts = [][2]uint16{{2379, 2380}, {6666, 6666}, {8300, 8600}, {9001, 9003}, {9090, 9090}, {9999, 9999}}

// vxlanPort is the one that IANA has assigned.
const vxlanPort = 4789

// portSet is a set of ports by protocol.
type portSet map[uint8]*[1 << 16]bool

func newPortSet() portSet { return portSet{tcp: new([1 << 16]bool), udp: new([1 << 16]bool)} }

func (s portSet) set(proto uint8, low, high uint16, to bool) {
	for p := int(low); p <= int(high); p++ {
		s[proto][p] = to
	}
}

func (s portSet) ranges() []ofnet.PortRange {
	var out []ofnet.PortRange
	for _, proto := range []uint8{tcp, udp} {
		for p := 0; p < 1<<16; p++ {
			if !s[proto][p] {
				continue
			}
			low := p
			for p+1 < 1<<16 && s[proto][p+1] {
				p++
			}
			out = append(out, ofnet.PortRange{Proto: proto, Low: uint16(low), High: uint16(p)})
		}
	}
	return out
}

// parsePorts calls f for each range of a list.
func parsePorts(flag, list string, f func(proto uint8, low, high uint16)) error {
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		ports, name, one := strings.Cut(item, "/")
		protos := []uint8{tcp, udp}
		if one {
			switch name {
			case "tcp":
				protos = []uint8{tcp}
			case "udp":
				protos = []uint8{udp}
			default:
				return cliconf.Usagef("%s %q: expected tcp or udp after the slash", flag, item)
			}
		}
		first, last, ranged := strings.Cut(ports, "-")
		if !ranged {
			last = first
		}
		low, err1 := strconv.ParseUint(first, 10, 16)
		high, err2 := strconv.ParseUint(last, 10, 16)
		if err1 != nil || err2 != nil || low == 0 || low > high {
			return cliconf.Usagef("%s %q: expected a port from 1 to 65535, or two with a dash, the lower one first", flag, item)
		}
		for _, proto := range protos {
			f(proto, uint16(low), uint16(high))
		}
	}
	return nil
}

// reach is what containers of this host are kept from, and what is open to them.
type reach struct {
	closed  []ofnet.PortRange
	tunnels []uint16
	opened  portSet
	all     bool
}

// reach works that out from the flags. apiServer, a URL or host and port, stays within
// reach; "" for none.
func (o *options) containerReach(apiServer string) (reach, error) {
	r := reach{opened: newPortSet(), all: strings.TrimSpace(o.reach.open) == "all"}
	if !r.all {
		if err := parsePorts("--container-reach", o.reach.open, func(proto uint8, low, high uint16) { r.opened.set(proto, low, high, true) }); err != nil {
			return r, err
		}
	}
	closed := newPortSet()
	both := func(low, high uint16) {
		closed.set(tcp, low, high, true)
		closed.set(udp, low, high, true)
	}
	for _, p := range controlPorts {
		both(p[0], p[1])
	}
	for _, address := range append([]string{o.restAddress}, o.store.Endpoints...) {
		if port, ok := portOf(address); ok {
			both(port, port)
		}
	}
	if port, ok := portOf(apiServer); ok {
		closed.set(tcp, port, port, false)
	}
	if err := parsePorts("--control-ports", o.reach.closed, func(proto uint8, low, high uint16) { closed.set(proto, low, high, true) }); err != nil {
		return r, err
	}
	for proto, ports := range r.opened {
		for p, open := range ports {
			if open || r.all {
				closed[proto][p] = false
			}
		}
	}
	r.closed = closed.ranges()
	for _, port := range []uint16{vxlanPort, uint16(o.vxlanPort)} {
		if !r.opened[udp][port] && !slices.Contains(r.tunnels, port) {
			r.tunnels = append(r.tunnels, port)
		}
	}
	return r, nil
}

// portOf reads the port of an address or URL.
func portOf(address string) (uint16, bool) {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		address = u.Host
		if u.Port() == "" && u.Scheme == "https" {
			address = net.JoinHostPort(u.Hostname(), "443")
		}
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return uint16(n), err == nil && n != 0
}

// learn closes the ports that netmasters have registered, also those that are not the
// usual ones.
func (r reach) learn(ctx context.Context, store objdb.Store, driver *ovsd.Driver) {
	if r.all {
		return
	}
	for batch := range store.Watch(ctx, state.ServiceRoot+"netmaster") {
		var ports []ofnet.PortRange
		for _, ev := range batch.Events {
			var info objdb.ServiceInfo
			if ev.Deleted || json.Unmarshal(ev.KV.Value, &info) != nil || info.Port < 1 || info.Port > 65535 {
				continue
			}
			for _, proto := range []uint8{tcp, udp} {
				if port := uint16(info.Port); !r.opened[proto][port] {
					ports = append(ports, ofnet.PortRange{Proto: proto, Low: port, High: port})
				}
			}
		}
		driver.AddControlPorts(ports...)
	}
}

// maxAddresses bounds what a host tells of itself.
const maxAddresses = 64

// notOfTheHost are links with addresses that are not this host's alone.
var notOfTheHost = []string{"kube-ipvs0", "nodelocaldns"}

// localAddresses lists the addresses that others may reach this host under.
func localAddresses() []netip.Addr {
	links, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, link := range links {
		if slices.Contains(notOfTheHost, link.Name) || slices.Contains(ovsd.ContainerLinks(), link.Name) {
			continue
		}
		addrs, err := link.Addrs()
		if err != nil {
			continue // it has just gone
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if addr := p.Addr().Unmap(); err == nil && addr.IsGlobalUnicast() && !addr.IsLoopback() && len(out) < maxAddresses {
				out = append(out, addr)
			}
		}
	}
	return out
}

// followAddresses tells the agent when the host's addresses change.
func followAddresses(ctx context.Context, ag *agent.Agent, log logrus.FieldLogger) error {
	events, stop := make(chan netlink.AddrUpdate, 64), make(chan struct{})
	defer close(stop)
	if err := netlink.AddrSubscribe(events, stop); err != nil {
		log.WithError(err).Warn("cannot watch the addresses of this host")
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-events:
			if !ok {
				return nil
			}
			ag.HostChanged()
		}
	}
}
