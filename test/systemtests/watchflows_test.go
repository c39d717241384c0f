package systemtests

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/contiv/netplugin/test/lab"
)

// watchFlows has a host's switch tell which flows are removed, until noneGone is called,
// which fails when there are any. An agent that starts must keep what its predecessor has
// left until it knows better, also for less time than a packet would notice.
func (c cluster) watchFlows(host string) (noneGone func()) {
	c.t.Helper()
	var ends []func()
	for _, bridge := range []string{vlanBridge, vxlanBridge} {
		ends = append(ends, c.watchBridge(host, bridge))
	}
	return func() {
		c.t.Helper()
		for _, end := range ends {
			end()
		}
	}
}

func (c cluster) watchBridge(host, bridge string) (noneGone func()) {
	c.t.Helper()
	var out buffer
	end := c.background(host, lab.Stdio{Out: &out, Err: &out}, syscall.SIGTERM, "ovs-ofctl", "-O", "OpenFlow13", "monitor", bridge, "watch:")
	c.eventually("the switch lists the flows of "+bridge, func() error {
		if !strings.Contains(out.String(), "event=ADDED") {
			return fmt.Errorf("it says %q", out.String())
		}
		return nil
	})
	return func() {
		c.t.Helper()
		end()
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "event=DELETED reason=delete ") { // learned flows time out
				c.t.Errorf("%s, %s: a flow was removed: %s", host, bridge, strings.TrimSpace(line))
			}
		}
	}
}
