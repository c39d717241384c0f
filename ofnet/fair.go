package ofnet

import of "github.com/contiv/netplugin/libopenflow"

// fair keeps a container of this host from exhausting what all containers share: entries of
// connection tracking, and the agent's time.
//
//	service-new  what begins a connection that has to do with a service, within the rate
//	state-new    what begins a connection that is subject to rules, within the rate
//
// A packet that begins a connection counts once, where it is tracked first.
type fair struct{}

// Meters of endpoints, between those of queries and rejectMeter. Ports that share one are
// portMeters apart.
const (
	firstConnectionMeter = firstDNSMeter + dnsMeters
	portMeters           = 1000
	firstAgentMeter      = firstConnectionMeter + portMeters
)

func connectionMeter(port uint32) uint32 { return firstConnectionMeter + port%portMeters }

// agentMeter limits what the agent gets from one port: packets to reject, and neighbor
// discovery where the switch cannot answer it itself.
func agentMeter(port uint32) uint32 { return firstAgentMeter + port%portMeters }

// A port's limits of packets to the agent, per second.
const (
	agentRate  = 200
	agentBurst = 200
)

func (fair) id() uint8 { return featureFair }

func (fair) tables() []table { return []table{tableServiceNew, tableStateNew} }

// afterService and afterTrack are the tables that follow a lookup in connection tracking.
func (p *Pipeline) afterService() table {
	if p.set.ConnectionRate == 0 {
		return tableServiceState
	}
	return tableServiceNew
}

func (p *Pipeline) afterTrack() table {
	if p.set.ConnectionRate == 0 {
		return tableState
	}
	return tableStateNew
}

func (f fair) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case Endpoint:
		return part{rows: f.endpoint(p, o), meters: f.meters(p.set, o)}
	}
	return part{}
}

func (fair) base(p *Pipeline) []row {
	if p.set.ConnectionRate == 0 {
		return nil
	}
	return []row{
		{tableServiceNew, prioMiss, of.NewMatch(), goTo(p.to(tableServiceState))},
		{tableStateNew, prioMiss, of.NewMatch(), goTo(p.to(tableState))},
	}
}

func (fair) endpoint(p *Pipeline, e Endpoint) []row {
	if !e.Local() {
		return nil
	}
	from := of.NewMatch().InPort(e.Port)
	var rows []row
	if p.set.Kernel && p.layout.has(tableNDReply) {
		rows = append(rows, row{tableNDReply, prioSpecific, from.ICMPv6(icmpv6NeighborSolicit), handOver(agentMeter(e.Port))})
	}
	if p.set.ConnectionRate == 0 {
		return rows
	}
	begins := from.CTState(trackedNew, trackedNew)
	rate := of.NewInstructions().Meter(connectionMeter(e.Port))
	return append(rows,
		row{tableServiceNew, prioNormal, begins, rate.Goto(p.to(tableServiceState))},
		row{tableStateNew, prioNormal, begins.With(regZone.is(0)), rate.Apply(of.NewActions().SetField(regZone.is(counted))).Goto(p.to(tableState))})
}

// begin returns the rows that let an endpoint's packets begin a connection in a table,
// within its rate unless they have been counted before.
func (p *Pipeline) begin(t table, priority uint16, e Endpoint, m of.Match, do of.Instructions) []row {
	m = m.CTState(trackedNew, trackedNew)
	rows := []row{{t, priority, m, do}}
	if p.set.ConnectionRate != 0 {
		rate := of.NewInstructions().Meter(connectionMeter(e.Port)) + do
		rows = append(rows, row{t, priority + 1, m.With(regZone.is(0)), rate})
	}
	return rows
}

// Zones are the conntrack zones of a VRF's connections on a host: those of rules, of
// translations for the host and the outside, and of services.
func Zones(vrf uint16) []uint16 { return []uint16{vrf, hostZone(vrf), ServiceZone(vrf)} }

// IsICMP reports whether an IP protocol is that of ICMP of either family.
func IsICMP(proto uint8) bool { return proto == of.ProtoICMP || proto == of.ProtoICMPv6 }

// handOver sends a packet to the agent, within the rate of a meter.
func handOver(meter uint32) of.Instructions {
	return of.NewInstructions().Meter(meter).Apply(of.NewActions().OutputController(toAgent))
}

// counted, in regZone: not a zone of a service, but the mark that the packet has been
// counted.
const counted = 1

// meters are the meters of an endpoint of this host.
func (fair) meters(set Settings, e Endpoint) []of.Meter {
	if !e.Local() {
		return nil
	}
	const flags = of.MeterPktps | of.MeterBurst
	meters := []of.Meter{{ID: agentMeter(e.Port), Flags: flags, Bands: of.NewBands().Drop(agentRate, agentBurst)}}
	if r := set.ConnectionRate; r != 0 {
		meters = append(meters, of.Meter{ID: connectionMeter(e.Port), Flags: flags, Bands: of.NewBands().Drop(r, r)})
	}
	return meters
}
