package ofnet

import of "github.com/contiv/netplugin/libopenflow"

// macSwitch uses the bridge's own MAC learning; VLAN tags of the ports isolate networks.
type macSwitch struct{}

func (macSwitch) id() uint8       { return featureSwitch }
func (macSwitch) tables() []table { return []table{tableSwitch} }

func (f macSwitch) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case Endpoint:
		return part{rows: f.endpoint(p, o)}
	}
	return part{}
}

func (macSwitch) base(*Pipeline) []row {
	return []row{{tableSwitch, prioNormal, of.NewMatch(), apply(of.NewActions().Normal())}}
}

// endpoint passes packets to a limited endpoint through its meter.
func (macSwitch) endpoint(_ *Pipeline, e Endpoint) []row {
	if !e.QoS.limits(e) {
		return nil
	}
	m := of.NewMatch().With(regSegment.is(e.Segment())).EthDst(e.MAC)
	return []row{{tableSwitch, prioSpecific, m, e.QoS.received(e).Apply(of.NewActions().Normal())}}
}
