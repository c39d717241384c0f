package ofnet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/errs"
)

// Reasons of drops by meters; all other reasons are tables.
const (
	DropRate     = "rate"            // above the rate of the endpoint's group
	DropQueries  = "dns-rate"        // above a container's rate of name queries
	DropRefusals = "reject-rate"     // above the rate at which the agent rejects packets
	DropOpenings = "connection-rate" // above a container's rate of new connections
)

// Drops counts the packets that the bridge has dropped since it got the flows that dropped
// them, by reason: the name of the table where a packet ended, as in Pipeline.Tables, or
// one of the above.
func (s *Switch) Drops(ctx context.Context, tables []string) (map[string]uint64, error) {
	denied := drop
	if n := slices.Index(tables, tableDenied.String()); n >= 0 {
		denied = goTo(uint8(n))
	}
	drops := map[string]uint64{DropRate: 0, DropQueries: 0, DropRefusals: 0, DropOpenings: 0}
	for _, object := range []string{"miss", "fixed"} {
		const objectBits = 1<<32 - 1
		err := s.Counters(ctx, cookie(0, 0, object)&objectBits, objectBits|cookieLearned, func(f of.FlowStats) {
			ends := f.Instructions == drop || denied != drop && strings.HasSuffix(string(f.Instructions), string(denied))
			if ends && int(f.Table) < len(tables) && !s.isLearned(f.Table) {
				drops[tables[f.Table]] += f.Packets
			}
		})
		if err != nil {
			return nil, fmt.Errorf("count the drops of %s: %w", s.cfg.Name, err)
		}
	}
	meters, err := s.meterStats(ctx)
	if err != nil {
		return nil, fmt.Errorf("count the drops of %s: %w", s.cfg.Name, err)
	}
	for _, m := range meters {
		reason := DropRate
		switch {
		case m.ID > lastMeter, m.ID >= firstLogMeter && m.ID <= tunnelLogMeter: // those have been counted where they were denied
			continue
		case m.ID >= firstConnectionMeter && m.ID < firstConnectionMeter+portMeters:
			reason = DropOpenings
		case m.ID == rejectMeter, m.ID >= firstAgentMeter && m.ID < firstAgentMeter+portMeters:
			reason = DropRefusals
		case m.ID >= firstDNSMeter && m.ID < firstDNSMeter+dnsMeters:
			reason = DropQueries
		}
		for _, band := range m.Bands {
			drops[reason] += band.Packets
		}
	}
	return drops, nil
}

// isLearned reports whether a table holds learned flows. Packets pass it and are not
// dropped at its end.
func (s *Switch) isLearned(table uint8) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.learned[table]
}

func (s *Switch) meterStats(ctx context.Context) ([]of.MeterStats, error) {
	s.mu.Lock()
	ch := s.channel
	s.mu.Unlock()
	if ch == nil {
		return nil, errs.New(errs.Unavailable, "bridge %s has no OpenFlow connection", s.cfg.Name)
	}
	if ch, ok := ch.(interface {
		MeterStats(context.Context) ([]of.MeterStats, error)
	}); ok {
		return ch.MeterStats(ctx)
	}
	return nil, nil
}
