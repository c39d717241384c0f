package ovsd

import (
	"context"
	"errors"
	"strings"

	"github.com/contiv/netplugin/drivers"
)

// RuleHits reads the switches' counters.
func (d *Driver) RuleHits(ctx context.Context) (map[string]drivers.Hits, error) {
	out := map[string]drivers.Hits{}
	var failed error
	for _, s := range d.bridges {
		hits, err := s.sw.RuleHits(ctx)
		failed = errors.Join(failed, err)
		for owner, c := range hits {
			if id, ok := strings.CutPrefix(owner, "rule/"); ok {
				sum := out[id]
				out[id] = drivers.Hits{Packets: sum.Packets + c.Packets, Bytes: sum.Bytes + c.Bytes}
			}
		}
	}
	return out, failed
}
