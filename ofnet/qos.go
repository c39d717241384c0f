package ofnet

import of "github.com/contiv/netplugin/libopenflow"

// limit sends what an endpoint sends through its meter, if it has one. The meter has
// the port's number, which no other endpoint of the bridge has.
func (q QoS) limit(e Endpoint) of.Instructions {
	if q.Rate == 0 {
		return of.NewInstructions()
	}
	return of.NewInstructions().Meter(e.Port)
}

// meters are those of an endpoint of this host.
func (q QoS) meters(e Endpoint) []of.Meter {
	if !e.Local() || q.Rate == 0 {
		return nil
	}
	m := of.Meter{ID: e.Port, Flags: of.MeterKbps}
	if q.Burst != 0 {
		m.Flags |= of.MeterBurst
	}
	m.Bands = of.NewBands().Drop(q.Rate, q.Burst)
	return []of.Meter{m}
}
