package whatif

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
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

// Agents say what NetworkPolicies of Kubernetes decide, and where its Services lead.
type Agents interface {
	Ask(ctx context.Context, host string, q flowapi.PolicyQuestion) ([]flowapi.Decision, error)
	Find(ctx context.Context, host string, q flowapi.ServiceQuestion) (flowapi.ServiceAnswer, error)
}

// explainer is one question about one destination.
type explainer struct {
	cluster Cluster
	agents  Agents // nil: there is no Kubernetes
	tenant  string // of the one that opens the connection
	out     *flowapi.Explanation
	conn    judge.Connection
}

// Explain says what the model decides about a connection. Who is unknown is NotFound, what
// cannot be asked Invalid. applied says how far a host is.
func Explain(ctx context.Context, c Cluster, agents Agents, applied func(host string) flowapi.Applied, q flowapi.Question) (*flowapi.Explanation, error) {
	a, err := resolve(ctx, c, agents, q)
	if err != nil {
		return nil, err
	}
	var all []flowapi.Explanation
	for _, to := range a.to[:min(len(a.to), flowapi.MostProviders)] {
		e := &explainer{cluster: c, agents: agents, tenant: a.tenant, out: &flowapi.Explanation{
			Proto: a.packet.Proto, Service: a.service, Decisions: []flowapi.Decision{}, Applied: []flowapi.Applied{},
		}}
		e.ends(a.packet, to)
		if err := e.decide(ctx); err != nil {
			return nil, err
		}
		e.hosts(applied)
		e.out.Text = sentence(e.out)
		all = append(all, *e.out)
	}
	return summary(all, len(a.to)), nil
}

// summary is the explanation of the first provider that is not allowed, or of the first, with
// those of all.
func summary(all []flowapi.Explanation, providers int) *flowapi.Explanation {
	out, allowed := all[0], 0
	for _, one := range all {
		switch {
		case one.Verdict == flowapi.Allowed:
			allowed++
		case out.Verdict == flowapi.Allowed:
			out = one
		}
	}
	if len(all) == 1 {
		return &out
	}
	out.Providers = all
	out.Text = fmt.Sprintf("%d of %d providers of service %s may be reached; %s", allowed, len(all), out.Service.Name, out.Text)
	if providers > len(all) {
		out.Text += fmt.Sprintf("; %d more providers were not looked at", providers-len(all))
	}
	return &out
}

// ends says which connection it is; to without an address is a service that nobody provides.
func (e *explainer) ends(p traceapi.Packet, to netip.AddrPort) {
	proto, _ := flowapi.ProtoNumber(p.Proto) // has been checked
	e.conn = judge.Connection{Src: p.Src, Dst: to.Addr(), Proto: proto, SrcPort: p.SrcPort, DstPort: to.Port()}
	e.out.Src, e.conn.SrcGroup = e.end(e.conn.Src)
	if e.conn.Dst.IsValid() {
		e.out.Dst, e.conn.DstGroup = e.end(e.conn.Dst)
	}
	e.out.Dst.Port = e.conn.DstPort
}

// end is what is known of an address in the tenant, and the number of its group.
func (e *explainer) end(a netip.Addr) (flowapi.End, uint32) {
	found := e.cluster.EndpointsAt(a, e.tenant)
	if len(found) != 1 {
		return flowapi.End{Address: a}, 0
	}
	ep := found[0]
	network, _ := e.cluster.NetworkOf(ep)
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
