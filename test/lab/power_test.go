package lab_test

import (
	"testing"

	"github.com/contiv/netplugin/utils/errs"
)

// TestPower: a host that was off has its disk, its cables and its switch again, and
// nothing else of before.
func TestPower(t *testing.T) {
	l := upBare(t, 2)
	on(t, l, "host1", "echo kept >/var/lib/contiv/file; touch /run/gone; sleep 1000 >/dev/null 2>&1 & true")
	on(t, l, "host1", "ovs-vsctl add-br br0 -- set bridge br0 datapath_type=netdev")
	for range 2 {
		if err := l.PowerOff(t.Context(), "host1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Output(t.Context(), "host1", "true"); !errs.Is(err, errs.Unavailable) {
		t.Errorf("a command on a host that is off: %v, want kind unavailable", err)
	}
	if err := l.PowerOn(t.Context(), "host1"); err != nil {
		t.Fatal(err)
	}
	if err := l.PowerOn(t.Context(), "host1"); !errs.Is(err, errs.Exists) {
		t.Errorf("a host that runs is started: %v, want kind exists", err)
	}
	if got := on(t, l, "host1", "cat /var/lib/contiv/file; ls /run/gone 2>/dev/null || true; ovs-vsctl list-br; ps -C sleep -o pid= || true"); got != "kept\nbr-ext\nbr0" {
		t.Errorf("after a reboot: %q, want the file and the bridges, nothing else", got)
	}
	on(t, l, "host2", "ping -c 1 -w 20 192.168.2.10; ping -c 1 -w 20 192.168.60.10")
}
