// Package ovstest runs a real Open vSwitch for a test: its own ovsdb-server and
// ovs-vswitchd with the userspace datapath, in its own directory and network
// namespace, so that any number of them run side by side and leave nothing behind.
//
//	sw := ovstest.Start(t)
//	sw.AddBridge("br0")
//	conn, err := ofctrl.Dial(ctx, ofctrl.Config{Target: sw.Target("br0")})
//	…
//	verdict := sw.Trace("br0", "in_port=1,ip,nw_dst=10.1.1.2")
//
// It needs root and the Debian packages openvswitch-switch (2.17 or newer); without
// them the test fails and says what is missing.
package ovstest
