package dockplugin

import (
	"context"
	"strings"
	"testing"

	"github.com/contiv/netplugin/utils/errs"
)

// unrealised are ports for which the switch does not forward.
type unrealised struct {
	Ports
	err error
}

func (u unrealised) Realised(context.Context, string) error { return u.err }

// TestStartsBeforeTheSwitch: a container is started although the switch is slow or down,
// because an Engine tries only once; but not with a port that cannot work.
func TestStartsBeforeTheSwitch(t *testing.T) {
	for _, tt := range []struct {
		err   error
		fails bool
	}{
		{errs.New(errs.Timeout, "not in time"), false},
		{errs.New(errs.Unavailable, "no switch"), false},
		{errs.New(errs.Invalid, "no such port"), true},
	} {
		w := newWorld(t, func(c *Config) { c.Ports = unrealised{c.Ports, tt.err} })
		w.network("net1", "10.1.1.0/24", "10.1.1.254")
		w.eventually("docker network", func() bool { return w.engine.named("net1") != nil })
		_, joined, err := w.engine.run("c1", "net1", "", nil)
		if (err != nil) != tt.fails || !tt.fails && !strings.HasPrefix(joined.InterfaceName.SrcName, "vport") {
			t.Errorf("%v: %+v, %v", tt.err, joined, err)
		}
	}
}
