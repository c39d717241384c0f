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
	return []of.Meter{{
		ID: e.Port, Flags: of.MeterKbps | of.MeterBurst, Bands: of.NewBands().Drop(q.Rate, max(q.Burst, q.Rate/leastBurst, 1)),
	}}
}

// leastBurst is the part of a second that a meter lets through at once, at least. TCP
// waits 200 ms or more after a loss (RFC 6298 says 1 s, kernels do 200 ms): a meter that
// cannot save up that long gives TCP a fraction of the rate only.
const leastBurst = 4
