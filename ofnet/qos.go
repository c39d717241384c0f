package ofnet

import of "github.com/contiv/netplugin/libopenflow"

// An endpoint has one meter for what it sends and one for what it receives, numbered by its
// port. Other meters come after them.
const (
	// LastMeteredPort is the highest port number whose endpoint can be limited.
	LastMeteredPort = 0x7400

	firstReceiveMeter = 0x7800 // + port
)

// sent passes what an endpoint sends through its meter, if it has one.
func (q QoS) sent(e Endpoint) of.Instructions {
	if !q.limits(e) {
		return of.NewInstructions()
	}
	return of.NewInstructions().Meter(e.Port)
}

// received passes what an endpoint receives through its meter, if it has one.
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

// meters are the meters of an endpoint of this host.
func (q QoS) meters(e Endpoint) []of.Meter {
	if !q.limits(e) {
		return nil
	}
	bands := of.NewBands().Drop(q.Rate, max(q.Burst, q.Rate/leastBurst, 1))
	const flags = of.MeterKbps | of.MeterBurst
	return []of.Meter{{ID: e.Port, Flags: flags, Bands: bands}, {ID: firstReceiveMeter + e.Port, Flags: flags, Bands: bands}}
}

// leastBurst is the minimum burst of a meter, as a fraction of a second. TCP waits 200 ms
// or more after a loss (RFC 6298 says 1 s, kernels do 200 ms): with less burst than that,
// TCP gets only a fraction of the rate.
const leastBurst = 4
