package ofnet

import of "github.com/contiv/netplugin/libopenflow"

// rejecter has the agent tell a sender that its connection is rejected, at a bounded
// rate. What the agent answers leaves by the port the packet came from, translated like any
// answer of a provider.
//
//	reject       to the agent
//	reject-back  the agent's answer: as if from the service, if it was for one
//	reject-out   out of the port that the packet came from
type rejecter struct{}

func (rejecter) id() uint8       { return featureReject }
func (rejecter) tables() []table { return []table{tableReject, tableRejectBack, tableRejectOut} }

// rejectMeter limits the packets that the agent has to answer per second, except those from
// endpoints of this host, which have meters of their own (see fair).
const (
	rejectMeter = 0xffe0
	rejectRate  = 200
	rejectBurst = 200

	rejectedByRule = 2 // in regScratch
)

func (f rejecter) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p), meters: f.meters()}
	case Endpoint:
		return part{rows: f.endpoint(o)}
	}
	return part{}
}

func (rejecter) base(p *Pipeline) []row {
	tell := handOver(rejectMeter)
	rows := []row{{tableRejectOut, prioNormal, of.NewMatch(), apply(of.NewActions().OutputReg(regOutPort.all()))}}
	for _, family := range families {
		rows = append(rows,
			row{tableReject, prioNormal, family, tell},
			row{tableRejectBack, prioNormal, family, translate(p, of.NewActions(), tableRejectOut)})
	}
	return rows
}

// endpoint gives an endpoint of this host a rate of its own. The feature in the flow's
// cookie tells the agent what to answer.
func (rejecter) endpoint(e Endpoint) []row {
	if !e.Local() {
		return nil
	}
	from, tell := of.NewMatch().InPort(e.Port), handOver(agentMeter(e.Port))
	return []row{{tableReject, prioSpecific, from.IP(), tell}, {tableReject, prioSpecific, from.IPv6(), tell}}
}

func (rejecter) meters() []of.Meter {
	return []of.Meter{{ID: rejectMeter, Flags: of.MeterPktps | of.MeterBurst, Bands: of.NewBands().Drop(rejectRate, rejectBurst)}}
}
