package whatif

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/contiv/netplugin/netmaster/trace"
	"github.com/contiv/netplugin/ofnet/judge"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/state/traceapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Cluster is what explaining needs to know.
type Cluster interface {
	trace.Cluster
	// Rules returns the present rules.
	Rules() *Rules
	// ServiceOf returns the service that has an address in a tenant; nil: none has.
	ServiceOf(a netip.Addr, tenant string) *state.ServiceLB
}

// Agents say what NetworkPolicies of Kubernetes decide.
type Agents interface {
	Ask(ctx context.Context, host string, q flowapi.PolicyQuestion) ([]flowapi.Decision, error)
}

// explainer is one question.
type explainer struct {
	cluster Cluster
	agents  Agents // nil: there are no NetworkPolicies
	tenant  string
	out     *flowapi.Explanation
	conn    judge.Connection
}

// Explain says what the model decides about a connection. Who is unknown is NotFound, what
// cannot be asked Invalid. applied says how far a host is.
func Explain(ctx context.Context, c Cluster, agents Agents, applied func(host string) flowapi.Applied, q flowapi.Question) (*flowapi.Explanation, error) {
	what, err := trace.Resolve(c, traceapi.Query{From: q.From, To: q.To, Tenant: q.Tenant, Proto: q.Proto, Port: q.Port, Family: q.Family})
	if err != nil {
		return nil, err
	}
	e := &explainer{cluster: c, agents: agents, tenant: q.Tenant, out: &flowapi.Explanation{Proto: what.Packet.Proto, Decisions: []flowapi.Decision{}, Applied: []flowapi.Applied{}}}
	e.ends(what)
	if err := e.decide(ctx); err != nil {
		return nil, err
	}
	e.hosts(applied)
	e.out.Text = sentence(e.out)
	return e.out, nil
}

// ends finds out which connection it is: behind a service, that with its first provider.
func (e *explainer) ends(what *traceapi.Trace) {
	p := what.Packet
	if ep := e.cluster.EndpointNamed(what.From.Endpoint); ep != nil {
		_, e.tenant, _ = strings.Cut(ep.NetID, ".") // whose rules count, whatever was asked for
	}
	proto, _ := flowapi.ProtoNumber(p.Proto) // has been checked
	e.conn = judge.Connection{Src: p.Src, Dst: p.Dst, Proto: proto, SrcPort: p.SrcPort, DstPort: p.DstPort}
	if s := e.cluster.ServiceOf(p.Dst, e.tenant); s != nil {
		e.out.Service = &flowapi.Service{Name: s.ServiceName, Address: p.Dst, Port: p.DstPort}
		e.conn.Dst, e.conn.DstPort = e.provider(s, p)
	}
	e.out.Src, e.conn.SrcGroup = e.end(e.conn.Src)
	if e.conn.Dst.IsValid() {
		e.out.Dst, e.conn.DstGroup = e.end(e.conn.Dst)
	}
	e.out.Dst.Port = e.conn.DstPort
}

// provider returns who answers for a service; no valid address: nobody does.
func (e *explainer) provider(s *state.ServiceLB, p traceapi.Packet) (netip.Addr, uint16) {
	port, ok := providerPort(s.Ports, p.Proto, p.DstPort)
	if !ok {
		return netip.Addr{}, 0
	}
	var ids []string
	for _, provider := range s.Providers {
		ids = append(ids, provider.EpIDKey)
	}
	slices.Sort(ids)
	for _, id := range ids {
		ep := e.cluster.EndpointNamed(id)
		if ep == nil {
			continue
		}
		text := ep.IPAddress
		if p.Dst.Is6() {
			text = ep.IPv6Address
		}
		if a, err := netip.ParseAddr(text); err == nil {
			return a, port
		}
	}
	return netip.Addr{}, 0
}

// providerPort finds the provider's port in SERVICEPORT:PROVIDERPORT:PROTOCOL.
func providerPort(ports []string, proto string, port uint16) (uint16, bool) {
	for _, text := range ports {
		parts := strings.Split(text, ":")
		if len(parts) != 3 || !strings.EqualFold(parts[2], proto) || parts[0] != strconv.Itoa(int(port)) {
			continue
		}
		n, err := strconv.ParseUint(parts[1], 10, 16)
		return uint16(n), err == nil
	}
	return 0, false
}

// end is what is known of an address in the tenant, and the number of its group.
func (e *explainer) end(a netip.Addr) (flowapi.End, uint32) {
	found := e.cluster.EndpointsAt(a, e.tenant)
	if len(found) != 1 {
		return flowapi.End{Address: a}, 0
	}
	ep := found[0]
	network, _, _ := strings.Cut(ep.NetID, ".")
	return flowapi.End{
		Address: a, Endpoint: ep.ID, Name: cmp.Or(ep.EPCommonName, ep.ContainerID), Group: ep.ServiceName, Network: network, Host: ep.HomingHost,
	}, uint32(ep.EndpointGroupID)
}

// decide collects what decides, in the order in which the packet comes to it, up to what
// denies it.
func (e *explainer) decide(ctx context.Context) error {
	o := e.out
	o.Verdict = flowapi.Allowed
	if !e.conn.Dst.IsValid() {
		e.add(flowapi.Decision{Host: o.Src.Host, At: flowapi.AtSource, By: flowapi.ByService, Verdict: flowapi.Rejected})
		return nil
	}
	for _, step := range e.steps() {
		if step.host == "" {
			continue
		}
		if err := e.policies(ctx, step); err != nil {
			return err
		}
		if o.Verdict != flowapi.Allowed {
			return nil
		}
		d := e.cluster.Rules().Judge(e.tenant, e.conn)
		d.Host, d.At = step.host, step.at
		e.add(d)
		if o.Verdict != flowapi.Allowed {
			return nil
		}
	}
	return nil
}

// step is a host at which it is decided.
type step struct {
	host, at string
	ends     []flowapi.PolicyQuestion // of NetworkPolicies
}

func (e *explainer) steps() []step {
	o := e.out
	opens := flowapi.PolicyQuestion{Endpoint: o.Src.Endpoint, Opens: true, Peer: o.Dst.Address, Tenant: e.tenant, Proto: o.Proto, Port: e.conn.DstPort}
	asked := flowapi.PolicyQuestion{Endpoint: o.Dst.Endpoint, Peer: o.Src.Address, Tenant: e.tenant, Proto: o.Proto, Port: e.conn.DstPort}
	if o.Src.Host == o.Dst.Host {
		return []step{{o.Src.Host, flowapi.AtBoth, []flowapi.PolicyQuestion{opens, asked}}}
	}
	return []step{{o.Src.Host, flowapi.AtSource, []flowapi.PolicyQuestion{opens}}, {o.Dst.Host, flowapi.AtDestination, []flowapi.PolicyQuestion{asked}}}
}

// policies adds what NetworkPolicies say at a host.
func (e *explainer) policies(ctx context.Context, s step) error {
	if e.agents == nil {
		return nil
	}
	for _, q := range s.ends {
		decisions, err := e.agents.Ask(ctx, s.host, q)
		if err != nil {
			return errs.New(errs.Unavailable, "ask host %s what NetworkPolicies say: %w", s.host, err)
		}
		for _, d := range decisions {
			if d.By == flowapi.ByDefault && d.Verdict == flowapi.Allowed { // the rules' default tells that
				continue
			}
			d.Host = s.host
			e.add(d)
		}
		if e.out.Verdict != flowapi.Allowed {
			return nil
		}
	}
	return nil
}

func (e *explainer) add(d flowapi.Decision) {
	e.out.Decisions = append(e.out.Decisions, d)
	e.out.Verdict = d.Verdict
}

// hosts adds how far the hosts of both ends are.
func (e *explainer) hosts(applied func(host string) flowapi.Applied) {
	for _, s := range e.steps() {
		if s.host == "" {
			continue
		}
		a := applied(s.host)
		a.Host, a.At = s.host, s.at
		e.out.Applied = append(e.out.Applied, a)
	}
}

// sentence says all of it to people.
func sentence(o *flowapi.Explanation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s from %s to %s is %s", o.Proto, endName(o.Src), endName(o.Dst), o.Verdict)
	if o.Dst.Port != 0 && o.Dst.Address.IsValid() {
		fmt.Fprintf(&b, " at port %d", o.Dst.Port)
	}
	if s := o.Service; s != nil {
		fmt.Fprintf(&b, ", asked for as service %s", s.Name)
	}
	for i, d := range o.Decisions {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%s by %s on host %s", sep, d.Verdict, deciderName(d), d.Host)
	}
	for _, a := range o.Applied {
		if !a.Done {
			fmt.Fprintf(&b, "; host %s has not applied the present rules: %s", a.Host, a.Error)
		}
	}
	return b.String()
}

func endName(e flowapi.End) string {
	switch name := cmp.Or(e.Name, e.Endpoint); {
	case name != "":
		return name
	case e.Address.IsValid():
		return e.Address.String()
	}
	return "nobody"
}

func deciderName(d flowapi.Decision) string {
	switch {
	case d.Policy != "" && d.Rule != "":
		return d.By + " " + d.Policy + "/" + d.Rule
	case d.Policy != "":
		return d.By + " " + d.Policy
	}
	return d.By
}
