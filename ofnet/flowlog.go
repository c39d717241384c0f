package ofnet

import (
	of "github.com/contiv/netplugin/libopenflow"
)

// FlowLog is what a switch prepares for a log of connections.
type FlowLog uint8

// What is prepared.
const (
	LogOff     FlowLog = iota // nothing
	LogPoliced                // connections that are tracked anyway carry what allowed them; denied packets are handed over
	LogAll                    // and connections of VRFs without rules are tracked
)

// flowLog hands packets that were denied to the agent, within a rate for each port. Where
// a packet is denied it is only marked; it can go nowhere from here, whether the agent
// listens or not.
//
//	denied  to the agent, at the rate of the port that the packet came from
//
// What allowed a connection is in its label (docs/decisions/0036-see-and-explain.md):
// NumberOf the rule, and of what the policies of both ends allowed it by. The latter two
// travel in the packet's metadata until the connection is committed.
type flowLog struct{}

// The bits of a connection's label, and of the metadata.
const (
	labelRule = 0
	labelOut  = 32 // two numbers: sender's policy, receiver's policy
	labelBits = 64

	metadataOut = 0
	metadataIn  = 32

	metadataKind = 32 // of what is denied; the bits below are the number
)

// Denial is what denied a packet.
type Denial uint8

// What denies packets. The zero value is the end of a way that needs no mark.
const (
	DeniedByService   Denial = iota // no provider
	DeniedByRule                    // whose number is known
	DeniedByPolicyOut               // the sender's endpoint policy
	DeniedByPolicyIn                // the receiver's
	DeniedBySource                  // not the sender's own address
	DeniedByFrame                   // of a kind that containers may not send
	DeniedByReach                   // for the control plane
	DeniedByTunnel                  // from an address that is no host's
	numDenials
)

// Meters of denied packets, below those of queries. Ports that share one are portMeters
// apart.
const (
	firstLogMeter  = firstDNSMeter - 1 - portMeters
	tunnelLogMeter = firstDNSMeter - 1 // of what comes from elsewhere

	logRate, logBurst = 100, 100 // packets per second
	logBytes          = 256      // of a packet: its headers
)

func logMeter(port uint32) uint32 { return firstLogMeter + port%portMeters }

// NumberOf is the number of a rule in connections' labels, from its name; never 0.
func NumberOf(name string) uint32 {
	if n := uint32(Fingerprint(name) >> 32); n != 0 {
		return n
	}
	return 1
}

func (flowLog) id() uint8       { return featureFlowLog }
func (flowLog) tables() []table { return []table{tableDenied} }

func (f flowLog) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{
			rows:   []row{{tableDenied, prioMiss, of.NewMatch(), handHeaders(tunnelLogMeter)}},
			meters: []of.Meter{logMeterOf(tunnelLogMeter)},
		}
	case Endpoint:
		if o.Local() {
			return part{
				rows:   []row{{tableDenied, prioNormal, of.NewMatch().InPort(o.Port), handHeaders(logMeter(o.Port))}},
				meters: []of.Meter{logMeterOf(logMeter(o.Port))},
			}
		}
	}
	return part{}
}

func logMeterOf(id uint32) of.Meter {
	return of.Meter{ID: id, Flags: of.MeterPktps | of.MeterBurst, Bands: of.NewBands().Drop(logRate, logBurst)}
}

func handHeaders(meter uint32) of.Instructions {
	return of.NewInstructions().Meter(meter).Apply(of.NewActions().OutputController(logBytes))
}

// logs reports whether connections are logged.
func (s Settings) logs() bool { return s.FlowLog != LogOff }

// deny drops a packet; with a log, the agent is told of it.
func (p *Pipeline) deny(by Denial) of.Instructions { return p.handOn(p.mark(drop, by, 0)) }

// handOn ends the way of a packet that has been marked.
func (p *Pipeline) handOn(do of.Instructions) of.Instructions {
	if !p.set.logs() {
		return do
	}
	return do.Goto(p.to(tableDenied))
}

// mark notes what denies a packet, whose way goes on.
func (p *Pipeline) mark(do of.Instructions, by Denial, number uint32) of.Instructions {
	if !p.set.logs() {
		return do
	}
	return do.WriteMetadata(uint64(by)<<metadataKind|uint64(number), ^uint64(0))
}

// allowOut notes what the sender's policies allow a connection by, and that nothing is known of
// the receiver's yet.
func (p *Pipeline) allowOut(do of.Instructions, name string) of.Instructions {
	if !p.set.logs() {
		return do
	}
	return do.WriteMetadata(uint64(numberOfAny(name))<<metadataOut, ^uint64(0))
}

// allowIn notes what the receiver's policies allow a connection by.
func (p *Pipeline) allowIn(do of.Instructions, name string) of.Instructions {
	if !p.set.logs() {
		return do
	}
	return do.WriteMetadata(uint64(numberOfAny(name))<<metadataIn, uint64(^uint32(0))<<metadataIn)
}

// numberOfAny is NumberOf a rule; 0 for one without a name.
func numberOfAny(name string) uint32 {
	if name == "" {
		return 0
	}
	return NumberOf(name)
}

// label adds what allowed a connection to what is committed with it.
func (p *Pipeline) label(exec of.Actions, rule string) of.Actions {
	if !p.set.logs() {
		return exec
	}
	number := uint32(0) // of no rule; the connection may have had one before
	if rule != "" {
		number = NumberOf(rule)
	}
	return exec.Load(of.FieldCTLabel.Range(labelRule, labelOut-1), uint64(number)).
		Move(of.FieldMetadata.All(), of.FieldCTLabel.Range(labelOut, labelOut+labelBits-1))
}
