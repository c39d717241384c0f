package lab

import (
	"slices"
	"testing"
)

// TestServiceProxy: the agents of a cluster are told who translates Services.
func TestServiceProxy(t *testing.T) {
	for _, c := range []struct{ given, want string }{{"", ProxyFull}, {ProxyFull, ProxyFull}, {ProxyPods, ProxyPods}} {
		cfg, err := Config{Dir: "d", Kubernetes: true, ServiceProxy: c.given}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		args := newLab(cfg).hosts[0].netpluginArgs()
		if i := slices.Index(args, "--service-proxy"); i < 0 || args[i+1] != c.want {
			t.Errorf("service proxy %q: netplugin is called with %q", c.given, args)
		}
	}
	for _, c := range []Config{{Dir: "d", Kubernetes: true, ServiceProxy: "off"}, {Dir: "d", ServiceProxy: ProxyPods}} {
		if _, err := c.withDefaults(); err == nil {
			t.Errorf("service proxy %q is taken, with Kubernetes %t", c.ServiceProxy, c.Kubernetes)
		}
	}
}

// TestDatapath: the agents are told which datapath their lab has, and the tunnel address is
// where that needs it.
func TestDatapath(t *testing.T) {
	for _, c := range []struct{ given, want, tunnel string }{
		{"", DatapathUser, "br-ext"}, {DatapathUser, DatapathUser, "br-ext"}, {DatapathKernel, DatapathKernel, "eth1"},
	} {
		cfg, err := Config{Dir: "d", Datapath: c.given}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		args := newLab(cfg).hosts[0].netpluginArgs()
		if i := slices.Index(args, "--ovs-datapath"); i < 0 || args[i+1] != c.want {
			t.Errorf("datapath %q: netplugin is called with %q", c.given, args)
		}
		if got := cfg.TunnelInterface(); got != c.tunnel {
			t.Errorf("datapath %q: the tunnel address is on %s, want %s", c.given, got, c.tunnel)
		}
	}
	if _, err := (Config{Dir: "d", Datapath: "kernel"}).withDefaults(); err == nil {
		t.Error("datapath kernel is taken")
	}
}
