package ovsd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/appctl"
	"github.com/contiv/netplugin/utils/errs"
)

// Each tenant's connections on this host are tracked in zones of its own, and the number of
// connections per zone is limited, so that a tenant cannot exhaust the table for others.
// Open vSwitch keeps these limits in memory only: they are checked when it reconnects, and
// when a tenant gets its number.

// limitRetry is the wait after the switch has failed to set limits.
const limitRetry = 2 * time.Second

// ctLimits maintains the limits of the tenants' zones.
type ctLimits struct {
	cfg    Config
	kick   chan struct{}
	vrfs   func() []uint16 // the tenants' numbers
	kernel func() bool     // whether connections are tracked by the kernel's datapath
}

// zones returns those of the tenants with numbers.
func (c *ctLimits) zones() (zones []uint16) {
	for _, n := range c.vrfs() {
		zones = append(zones, ofnet.Zones(n)...)
	}
	slices.Sort(zones)
	return zones
}

// run maintains the limits until ctx ends.
func (c *ctLimits) run(ctx context.Context) error {
	said := ""
	for ctx.Err() == nil {
		again := make(<-chan time.Time)
		err := c.apply(ctx)
		if err != nil && ctx.Err() == nil {
			again = time.After(limitRetry)
			if text := err.Error(); text != said {
				said = text
				c.cfg.Log.WithError(err).Warn("cannot limit the connections of tenants; retrying in 2s")
			}
		}
		if err == nil {
			said = ""
		}
		select {
		case <-ctx.Done():
		case <-c.kick:
		case <-again:
		}
	}
	return ctx.Err()
}

// wake has run check the limits.
func (c *ctLimits) wake() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

func (c *ctLimits) apply(ctx context.Context) error {
	zones := c.zones()
	if len(zones) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	l, err := findLimiter(ctx, c.cfg, c.kernel())
	if err != nil {
		return err
	}
	want := map[uint16]uint32{}
	for _, z := range zones {
		want[z] = c.cfg.ConnectionLimit
	}
	have, err := l.read(ctx, zones)
	if err != nil {
		return err
	}
	return l.set(ctx, want, have)
}

// limiter reads and sets the limits of one datapath through ovs-vswitchd.
type limiter struct{ socket, datapath string }

func findLimiter(ctx context.Context, cfg Config, kernel bool) (*limiter, error) {
	socket, err := appctl.Find(ctx, cfg.runDir(), "ovs-vswitchd")
	if err != nil {
		return nil, fmt.Errorf("limit connections: %w", err)
	}
	l := &limiter{socket: socket, datapath: "netdev@ovs-netdev"}
	if kernel {
		l.datapath = "system@ovs-system"
	}
	return l, nil
}

// zonesAtOnce limits the length of a command.
const zonesAtOnce = 200

// read returns the limits of zones; 0 means no limit.
func (l *limiter) read(ctx context.Context, zones []uint16) (map[uint16]uint32, error) {
	have := map[uint16]uint32{}
	for some := range slices.Chunk(zones, zonesAtOnce) {
		list := strings.ReplaceAll(strings.Trim(fmt.Sprint(some), "[]"), " ", ",")
		out, err := appctl.Call(ctx, l.socket, "dpctl/ct-get-limits", l.datapath, "zone="+list)
		if err != nil {
			return nil, fmt.Errorf("read the limits of connections: %w", err)
		}
		for line := range strings.Lines(out) {
			var zone uint16
			var limit, count uint32
			if n, _ := fmt.Sscanf(line, "zone=%d,limit=%d,count=%d", &zone, &limit, &count); n == 3 {
				have[zone] = limit
			}
		}
	}
	return have, nil
}

// set sets the limits that differ; 0 removes a limit.
func (l *limiter) set(ctx context.Context, want, have map[uint16]uint32) error {
	var limits, lifted []string
	for _, z := range slices.Sorted(maps.Keys(want)) {
		switch limit := want[z]; {
		case limit == have[z]:
		case limit == 0:
			lifted = append(lifted, fmt.Sprint(z))
		default:
			limits = append(limits, fmt.Sprintf("zone=%d,limit=%d", z, limit))
		}
	}
	for some := range slices.Chunk(limits, zonesAtOnce) {
		if _, err := appctl.Call(ctx, l.socket, "dpctl/ct-set-limits", append([]string{l.datapath}, some...)...); err != nil {
			return fmt.Errorf("limit connections: %w", err)
		}
	}
	for some := range slices.Chunk(lifted, zonesAtOnce) {
		if _, err := appctl.Call(ctx, l.socket, "dpctl/ct-del-limits", l.datapath, "zone="+strings.Join(some, ",")); err != nil {
			return fmt.Errorf("lift the limits of connections: %w", err)
		}
	}
	return nil
}

// liftLimits removes the limits that ctLimits has set for the tenants with these numbers.
// If the switch does not run there are none.
func liftLimits(ctx context.Context, cfg Config, numbers []uint16) error {
	want := map[uint16]uint32{}
	var zones []uint16
	for _, n := range numbers {
		for _, z := range ofnet.Zones(n) {
			zones, want[z] = append(zones, z), 0
		}
	}
	if len(zones) == 0 {
		return nil
	}
	var failed error
	for _, kernel := range []bool{false, true} {
		l, err := findLimiter(ctx, cfg, kernel)
		if errs.Is(err, errs.Unavailable) || errs.Is(err, errs.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		have, err := l.read(ctx, zones)
		if errs.Is(err, errs.Invalid) { // the datapath does not exist
			continue
		}
		failed = errors.Join(failed, err)
		if err == nil {
			failed = errors.Join(failed, l.set(ctx, want, have))
		}
	}
	return failed
}
