package ovsd

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/appctl"
	"github.com/contiv/netplugin/ofnet/ovstrace"
	"github.com/contiv/netplugin/state/traceapi"
	"github.com/contiv/netplugin/utils/errs"
)

// States of connections that a trace assumes, in the words of ofproto/trace: the switch
// does not look up connections for a packet that does not exist.
const (
	firstPacket = "trk,new"
	firstAnswer = "trk,est,rpl"
)

// rounds is more than the number of times a packet passes through connection tracking:
// services, policy, and some to spare.
const rounds = 6

// Trace returns a packet's path through the bridge it enters, as computed by the switch.
// Nothing is sent. Errors: Invalid for an impossible request, NotFound for an endpoint that
// is not on this host, Unavailable if the switch does not answer.
func (d *Driver) Trace(ctx context.Context, req traceapi.HopRequest) (*traceapi.Hop, error) {
	t, err := d.prepareTrace(req)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	dir := filepath.Dir(strings.TrimPrefix(d.cfg.mgmtTarget(t.bridge.name), "unix:"))
	socket, err := appctl.Find(ctx, dir, "ovs-vswitchd")
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	args := []string{"--names"}
	state := firstPacket
	if req.Packet.Answer {
		state = firstAnswer
	}
	for range rounds {
		args = append(args, "--ct-next", state)
	}
	text, err := appctl.Call(ctx, socket, "ofproto/trace", append(args, t.bridge.name, t.flow())...)
	if err != nil {
		return nil, err
	}
	return d.explain(t, ovstrace.Parse(t.bridge.name, text)), nil
}

// tracing is a packet to trace, and where it comes from.
type tracing struct {
	bridge *bridge
	req    traceapi.HopRequest
	packet traceapi.Packet
	port   uint32
	from   string   // in words
	own    []string // fields for how it enters
	tables []string // their names by number
	routed bool
}

func (d *Driver) prepareTrace(req traceapi.HopRequest) (*tracing, error) {
	p := req.Packet
	if !p.Src.IsValid() || !p.Dst.IsValid() || p.Src.Is4() != p.Dst.Is4() {
		return nil, errs.New(errs.Invalid, "addresses %v and %v: expected two of one family", p.Src, p.Dst)
	}
	if _, ok := traceProtocols[p.Proto]; !ok {
		return nil, errs.New(errs.Invalid, "protocol %q: expected icmp, tcp, udp or sctp", p.Proto)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &tracing{req: req, packet: p}
	if err := d.placeTrace(t); err != nil {
		return nil, err
	}
	if d.pipeline(t.bridge) == nil {
		return nil, errs.New(errs.Unavailable, "bridge %s has no forwarding mode yet; is a netmaster running?", t.bridge.name)
	}
	t.routed, t.tables = d.compiler.Global.FwdMode == "routing", d.pipeline(t.bridge).Tables()
	if t.packet.EthDst == "" {
		t.packet.EthDst = d.nextMAC(t).String()
	}
	for what, mac := range map[string]string{"source": t.packet.EthSrc, "destination": t.packet.EthDst} {
		if _, err := ofnet.ParseMAC(mac); err != nil {
			return nil, errs.New(errs.Invalid, "%s MAC address: %w", what, err)
		}
	}
	t.packet.TTL = cmp.Or(t.packet.TTL, 64)
	return t, nil
}

// placeTrace determines where the packet enters. The caller holds mu.
func (d *Driver) placeTrace(t *tracing) error {
	req := t.req
	switch {
	case req.Endpoint != "":
		e, known := d.compiler.Endpoints[req.Endpoint]
		port := d.compiler.Ports[req.Endpoint].OpenFlow
		if !known {
			return errs.New(errs.NotFound, "endpoint %s is not known on host %s", req.Endpoint, d.cfg.HostLabel)
		}
		if port == 0 {
			return errs.New(errs.NotFound, "endpoint %s has no port on host %s", req.Endpoint, d.cfg.HostLabel)
		}
		t.bridge, t.port, t.from = d.bridges[e.Network.Encap], port, "endpoint "+req.Endpoint
		t.packet.EthSrc = cmp.Or(t.packet.EthSrc, e.MAC.String())
	case req.VNI != 0:
		t.bridge, t.port, t.from = d.bridges[ofnet.VXLAN], tunnelOFPort, "the tunnel from "+req.VTEP.String()
		if !req.VTEP.IsValid() || req.VTEP.Is4() != d.cfg.VTEP.Is4() {
			return errs.New(errs.Invalid, "tunnel address %v: expected the family of %v", req.VTEP, d.cfg.VTEP)
		}
		src, dst := "tun_src", "tun_dst"
		if req.VTEP.Is6() {
			src, dst = "tun_ipv6_src", "tun_ipv6_dst"
		}
		t.own = []string{"tun_id=" + strconv.Itoa(int(req.VNI)), src + "=" + req.VTEP.String(), dst + "=" + d.cfg.VTEP.String()}
	case req.VLAN != 0:
		if len(d.uplinks()) == 0 {
			return errs.New(errs.NotFound, "host %s has no uplink; give netplugin one with --vlan-uplinks", d.cfg.HostLabel)
		}
		t.bridge, t.port = d.bridges[ofnet.VLAN], d.uplinks()[0].Port
		t.from = fmt.Sprintf("uplink %s, VLAN %d", d.uplinks()[0].Name, req.VLAN)
		t.own = []string{"dl_vlan=" + strconv.Itoa(int(req.VLAN)), "dl_vlan_pcp=0"}
	default:
		return errs.New(errs.Invalid, "where the packet comes from: expected an endpoint, a VNI or a VLAN")
	}
	return nil
}

// strangerMAC stands for a gateway or neighbor that is not an endpoint.
var strangerMAC = ofnet.MAC{0x02, 0x00, 0x00, 0x00, 0x00, 0x01}

// nextMAC is the address that the sender would learn by ARP or neighbor discovery. The
// caller holds mu.
func (d *Driver) nextMAC(t *tracing) ofnet.MAC {
	if t.routed {
		return ofnet.RouterMAC
	}
	n := d.compiler.Endpoints[t.req.Endpoint].Network
	for _, s := range d.compiler.Services {
		if (s.Tenant == "" || s.Tenant == n.Tenant) && slices.Contains(s.VIPs, t.packet.Dst) {
			if t.packet.Dst.Is4() {
				return ofnet.ServiceMAC(t.packet.Dst)
			}
			return ofnet.RouterMAC
		}
	}
	next := t.packet.Dst
	if !n.Subnet4.Contains(next) && !n.Subnet6.Contains(next) {
		if next = n.Gateway4; t.packet.Dst.Is6() {
			next = n.Gateway6
		}
	}
	for _, e := range d.compiler.Endpoints {
		if e.Network.ID == n.ID && (e.IPv4 == next || e.IPv6 == next) && next.IsValid() {
			return e.MAC
		}
	}
	return strangerMAC
}

// traceProtocols maps each protocol to its OVS names in both families.
var traceProtocols = map[string][2]string{
	"icmp": {"icmp", "icmp6"}, "tcp": {"tcp", "tcp6"}, "udp": {"udp", "udp6"}, "sctp": {"sctp", "sctp6"},
}

// flow formats the packet for ofproto/trace.
func (t *tracing) flow() string {
	p := t.packet
	family, addr := 0, "nw"
	if p.Src.Is6() {
		family, addr = 1, "ipv6"
	}
	f := append([]string{
		traceProtocols[p.Proto][family], fmt.Sprint("in_port=", t.port), "dl_src=" + p.EthSrc, "dl_dst=" + p.EthDst,
		fmt.Sprintf("%s_src=%v", addr, p.Src), fmt.Sprintf("%s_dst=%v", addr, p.Dst), fmt.Sprint("nw_ttl=", p.TTL),
		// Otherwise a select group would recirculate the packet, and the trace would
		// stop there.
		"dp_hash=1",
	}, t.own...)
	switch {
	case p.Proto != "icmp":
		f = append(f, fmt.Sprint(p.Proto, "_src=", p.SrcPort), fmt.Sprint(p.Proto, "_dst=", p.DstPort))
	default:
		f = append(f, fmt.Sprintf("icmp%s_type=%d", []string{"", "v6"}[family], echoTypes[p.Answer][family]), fmt.Sprintf("icmp%s_code=0", []string{"", "v6"}[family]))
	}
	if p.Proto == "tcp" {
		f = append(f, map[bool]string{false: "tcp_flags=0x002", true: "tcp_flags=0x012"}[p.Answer]) // SYN; SYN and ACK
	}
	return strings.Join(f, ",")
}

// echoTypes are the types of ICMP echo (RFC 792, RFC 4443), for request and reply, by
// family.
var echoTypes = map[bool][2]int{false: {8, 128}, true: {0, 129}}

// left is the packet at the end of the trace.
func (t *tracing) left(fields map[string]string) traceapi.Packet {
	p := t.packet
	text := func(to *string, name string) {
		if v := fields[name]; v != "" {
			*to = v
		}
	}
	number := func(name string, old int) int {
		if v, err := strconv.ParseUint(fields[name], 0, 16); err == nil {
			return int(v)
		}
		return old
	}
	addr := func(to *netip.Addr, names ...string) {
		for _, name := range names {
			if a, err := netip.ParseAddr(fields[name]); err == nil {
				*to = a
			}
		}
	}
	text(&p.EthSrc, "dl_src")
	text(&p.EthDst, "dl_dst")
	addr(&p.Src, "nw_src", "ipv6_src")
	addr(&p.Dst, "nw_dst", "ipv6_dst")
	p.TTL = number("nw_ttl", p.TTL)
	if p.Proto != "icmp" {
		p.SrcPort, p.DstPort = uint16(number("tp_src", int(p.SrcPort))), uint16(number("tp_dst", int(p.DstPort)))
	}
	return p
}

// explain describes a trace in words.
func (d *Driver) explain(t *tracing, tr ovstrace.Trace) *traceapi.Hop {
	hop := &traceapi.Hop{
		Host: d.cfg.HostLabel, Bridge: t.bridge.name, Mode: d.pipeline(t.bridge).Mode().String(), From: t.from, Packet: t.packet,
		Steps: make([]traceapi.Step, len(tr.Steps)),
	}
	cookies := make([]uint64, len(tr.Steps))
	for i, s := range tr.Steps {
		cookies[i] = s.Cookie
	}
	owners := t.bridge.sw.Owners(cookies)
	names := d.portNames()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, s := range tr.Steps {
		hop.Steps[i] = d.step(t, s, owners[s.Cookie])
	}
	hop.Ends = d.ends(t, tr, names)
	if len(hop.Ends) == 0 {
		hop.Ends = []traceapi.End{d.inside(t, tr, hop.Steps)}
	}
	return hop
}

// portNames maps names of ports to endpoints, or to what else they are for.
func (d *Driver) portNames() map[string]string {
	names := map[string]string{}
	for _, a := range d.Attachments() {
		names[a.Port.OVSName] = a.EndpointID
	}
	return names
}

// ends lists where the packet leaves the bridge. The caller holds mu.
func (d *Driver) ends(t *tracing, tr ovstrace.Trace, endpoints map[string]string) []traceapi.End {
	packet := t.left(tr.Final)
	var out []traceapi.End
	add := func(e traceapi.End) {
		e.Packet = packet
		out = append(out, e)
	}
	for _, o := range tr.Out {
		id, isEndpoint := endpoints[o.Port]
		switch {
		case o.Tunnel:
			vtep, _ := netip.ParseAddr(o.TunDest)
			words := fmt.Sprintf("sent through the tunnel to %v, VNI %d", vtep, o.TunID)
			for _, note := range tr.Notes {
				if strings.Contains(note, "neighbor cache miss") {
					words += "; the switch does not know the MAC address of the way there yet and asks for it"
				}
			}
			add(traceapi.End{Kind: traceapi.Tunnelled, VTEP: vtep, VNI: uint32(o.TunID), Words: words})
		case isEndpoint && id == t.req.Endpoint:
			add(traceapi.End{Kind: traceapi.Answered, Endpoint: id, Words: "sent back to endpoint " + id + " by the switch"})
		case isEndpoint:
			add(traceapi.End{Kind: traceapi.Delivered, Endpoint: id, Words: fmt.Sprintf("delivered to endpoint %s, port %s", id, o.Port)})
		case slices.ContainsFunc(d.uplinks(), func(u ofnet.Uplink) bool { return u.Name == o.Port }):
			words := "sent out of uplink " + o.Port
			if o.VLAN != 0 {
				words += fmt.Sprintf(", VLAN %d", o.VLAN)
			}
			add(traceapi.End{Kind: traceapi.Uplinked, VLAN: uint16(o.VLAN), Words: words})
		case o.Port == t.bridge.dnsPort && o.Port != "":
			add(traceapi.End{Kind: traceapi.ToAgent, Words: "given to the name server of the host"})
		case d.isOurs(o.Port):
			add(traceapi.End{Kind: traceapi.ToHost, Words: "given to the host itself, port " + o.Port})
		}
	}
	return out
}

// isOurs reports whether a port without endpoint is in one of our bridges.
func (d *Driver) isOurs(name string) bool {
	for _, s := range d.bridges {
		if name == s.name {
			return true
		}
	}
	_, row, ok := d.find("Interface", "name", name)
	return ok && row.Map("external_ids")[ownerKey] == ownerMark && name != tunnelName
}

// inside is the end of a packet that does not leave the bridge. The caller holds mu.
func (d *Driver) inside(t *tracing, tr ovstrace.Trace, steps []traceapi.Step) traceapi.End {
	end := traceapi.End{Kind: traceapi.Dropped, Packet: t.left(tr.Final), Words: dropWords(steps)}
	switch {
	case tr.ToAgent && slices.ContainsFunc(steps, func(s traceapi.Step) bool { return strings.HasPrefix(s.Table, "reject") }):
		end.Kind, end.Words = traceapi.Answered, "refused: "+end.Words
	case tr.ToAgent && steps[len(steps)-1].Table == "denied": // which logs it
	case tr.ToAgent:
		end.Kind, end.Words = traceapi.ToAgent, "given to the agent of the host, which answers it"
	case len(tr.Notes) > 0:
		end.Words += " (" + strings.Join(tr.Notes, "; ") + ")"
	}
	return end
}

// ruleName is a rule's name for users, taken from the id of its record:
// <tenant>:<group>:<tenant>:<policy>:<tenant>:<policy>:<rule>:<direction>.
func ruleName(r drivers.Rule) string {
	part := strings.Split(r.ID, ":")
	if len(part) != 8 {
		return r.ID
	}
	return fmt.Sprintf("%s of policy %s, group %s of tenant %s", strings.Join(part[4:7], ":"), part[3], part[1], part[0])
}

// verdictOf is the action of a rule: allow, deny or reject.
func verdictOf(r drivers.Rule) string {
	switch {
	case r.Deny && r.Reject:
		return "reject"
	case r.Deny:
		return "deny"
	}
	return "allow"
}
