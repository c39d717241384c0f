package ovsd

import (
	"context"
	"errors"
	"net/netip"

	"github.com/contiv/netplugin/drivers"
)

// ServiceCounts reads the switches' counters. Those of a container that has gone to
// another host stay until they are idle.
func (d *Driver) ServiceCounts(ctx context.Context) ([]drivers.ServiceCount, error) {
	type seatOf struct {
		service string
		addr    netip.AddrPort
	}
	d.mu.Lock()
	seats := map[uint32]seatOf{}
	for r, s := range d.services.realised {
		for _, seat := range s.Frontends {
			seats[seat.Number] = seatOf{r.id, seat.Addr}
		}
	}
	d.mu.Unlock()
	var out []drivers.ServiceCount
	var failed error
	for _, s := range d.sides {
		counts, err := s.sw.ServiceCounts(ctx)
		failed = errors.Join(failed, err)
		for _, c := range counts {
			seat, ok := seats[c.Frontend]
			if !ok {
				continue // the service is gone
			}
			out = append(out, drivers.ServiceCount{
				Service: seat.service, VIP: seat.addr, Client: c.Client, Provider: c.Provider, Proto: c.Proto,
				PacketsIn: c.In.Packets, BytesIn: c.In.Bytes, PacketsOut: c.Out.Packets, BytesOut: c.Out.Bytes,
			})
		}
	}
	return out, failed
}
