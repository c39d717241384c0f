package ofnet

import of "github.com/contiv/netplugin/libopenflow"

// An endpoint has a meter for what it sends and one for what it receives. Their numbers
// follow from its port's; meters of other purposes come after them.
const (
	// LastMeteredPort is the largest number of a port whose endpoint can be limited.
	LastMeteredPort = 0x7800

	firstReceiveMeter = LastMeteredPort // + port
)

// sent sends what an endpoint sends through its meter, if it has one.
func (q QoS) sent(e Endpoint) of.Instructions {
	if !q.limits(e) {
		return of.NewInstructions()
	}
	return of.NewInstructions().Meter(e.Port)
}

// received sends what an endpoint is given through its meter, if it has one.
func (q QoS) received(e Endpoint) of.Instructions {
	if !q.limits(e) {
		return of.NewInstructions()
	}
	return of.NewInstructions().Meter(firstReceiveMeter + e.Port)
}

// limits reports whether the endpoint has meters.
func (q QoS) limits(e Endpoint) bool {
	return e.Local() && q.Rate != 0 && e.Port <= LastMeteredPort
}

// meters are those of an endpoint of this host.
func (q QoS) meters(e Endpoint) []of.Meter {
	if !q.limits(e) {
		return nil
	}
	bands := of.NewBands().Drop(q.Rate, max(q.Burst, q.Rate/leastBurst, 1))
	const flags = of.MeterKbps | of.MeterBurst
	return []of.Meter{{ID: e.Port, Flags: flags, Bands: bands}, {ID: firstReceiveMeter + e.Port, Flags: flags, Bands: bands}}
}

// leastBurst is the part of a second that a meter lets through at once, at least. TCP
// waits 200 ms or more after a loss (RFC 6298 says 1 s, kernels do 200 ms): a meter that
// cannot save up that long gives TCP a fraction of the rate only.
const leastBurst = 4
