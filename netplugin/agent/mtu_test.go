package agent

import (
	"net/netip"
	"testing"

	"github.com/sirupsen/logrus/hooks/test"

	"github.com/contiv/netplugin/drivers/fakedriver"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
)

func TestMTUOfPeers(t *testing.T) {
	for _, c := range []struct {
		host     string
		mtu      int
		warnings int
	}{
		{"h2", 1450, 0},
		{"h2", 0, 0}, // an older agent
		{"h2", 8950, 1},
		{"h1", 8950, 0}, // ourselves, before a restart
	} {
		log, lines := test.NewNullLogger()
		a := New(Config{HostLabel: "h1", VTEP: netip.MustParseAddr("192.168.60.10"), MTU: 1450, Store: memory.New(), Driver: fakedriver.New(), Log: log})
		a.setHost(state.Host{ID: c.host, VtepIP: "192.168.60.11", MTU: c.mtu})
		if got := len(lines.AllEntries()); got != c.warnings {
			t.Errorf("%s with an MTU of %d: %d warnings, expected %d", c.host, c.mtu, got, c.warnings)
		}
	}
}
