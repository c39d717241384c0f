package ovsd

import (
	"context"
	"fmt"
	"time"

	"github.com/contiv/netplugin/drivers"
)

// lookAgain is how often Flushed checks conditions that have no event, such as the state of
// the connection to the database.
const lookAgain = 100 * time.Millisecond

// Flushed implements drivers.Driver.
func (d *Driver) Flushed(ctx context.Context) error {
	for {
		for _, s := range d.bridges {
			if s.sw.Flushed(ctx) != nil {
				break
			}
		}
		err := d.Ready()
		if err == nil {
			return nil
		}
		again := time.NewTimer(lookAgain)
		select {
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
		if ctx.Err() != nil {
			return err
		}
	}
}

// Notes returns unexpected events at the switch since the agent started.
func (d *Driver) Notes() map[string]string {
	notes := map[string]string{}
	for _, s := range d.bridges {
		if st := s.sw.Status(); st.Restarts > 0 {
			notes[s.name] = fmt.Sprintf("ovs-vswitchd has ended and come back without flows %d times, last at %s; its log says why",
				st.Restarts, st.RestartedAt.UTC().Format(time.RFC3339))
		}
	}
	return notes
}

// Summary implements drivers.Driver.
func (d *Driver) Summary() drivers.Summary {
	var sum drivers.Summary
	for _, s := range d.bridges {
		status := s.sw.Status()
		sum.Flows += status.Desired
		sum.Digest += status.Digest
	}
	return sum
}
