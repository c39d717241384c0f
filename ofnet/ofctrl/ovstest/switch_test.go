package ovstest_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

func TestSwitch(t *testing.T) {
	var dir string
	t.Run("life", func(t *testing.T) {
		sw := ovstest.Start(t)
		dir = sw.RunDir()
		sw.AddBridge("br0")
		sw.AddDummyPort("br0", "p1", "7")
		sw.Ofctl("add-flow", "br0", "in_port=7,ip,nw_dst=10.1.1.2,actions=LOCAL")
		if got := sw.DumpFlows("br0"); len(got) != 1 || !strings.Contains(got[0], "nw_dst=10.1.1.2") {
			t.Errorf("flows: %q", got)
		}
		if out := sw.Trace("br0", "in_port=7,ip,nw_dst=10.1.1.2"); !strings.Contains(out, "LOCAL") {
			t.Errorf("trace:\n%s", out)
		}
		if _, err := sw.TryOfctl("add-flow", "br0", "actions=nonsense"); err == nil {
			t.Error("a bad flow was accepted")
		}
		sw.Restart(syscall.SIGKILL)
		if got := sw.DumpFlows("br0"); len(got) != 0 {
			t.Errorf("flows after a restart: %q", got)
		}
	})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the switch left %s behind: %v", dir, err)
	}
}
