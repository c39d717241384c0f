package ovsd

import (
	"context"
	"errors"

	"github.com/contiv/netplugin/drivers"
)

// ServiceCounts reads the switches' counters. Those of a container that has moved to
// another host stay until they are idle.
func (d *Driver) ServiceCounts(ctx context.Context) ([]drivers.ServiceCount, error) {
	d.mu.Lock()
	frontends := d.compiler.Frontends()
	d.mu.Unlock()
	var out []drivers.ServiceCount
	var failed error
	for _, s := range d.bridges {
		counts, err := s.sw.ServiceCounts(ctx)
		failed = errors.Join(failed, err)
		for _, c := range counts {
			frontend, ok := frontends[c.Frontend]
			if !ok {
				continue // the service no longer exists
			}
			out = append(out, drivers.ServiceCount{
				Service: frontend.Service, VIP: frontend.Addr, Client: c.Client, Provider: c.Provider, Proto: c.Proto,
				PacketsIn: c.In.Packets, BytesIn: c.In.Bytes, PacketsOut: c.Out.Packets, BytesOut: c.Out.Bytes,
			})
		}
	}
	return out, failed
}
