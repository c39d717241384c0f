// Package lab creates a cluster of hosts on one machine, for the demo, for tests and
// for development.
//
// A host is a network, mount, pid, uts and ipc namespace with a /run, /etc, /var and
// /opt of its own, so that every daemon in it uses its default paths and ports. It
// has its own Open vSwitch, with the userspace datapath unless [Config] says otherwise. An underlay, in one more set
// of namespaces, joins the hosts by three networks:
//
//	            underlay
//	  control      vtep       trunk          Linux bridges
//	  ──┬─────   ───┬────   ────┬───
//	    │           │           │            veth pairs
//	   eth0        eth1        eth2
//	192.168.2.1x    │        uplink of
//	REST, store   br-ext     VLAN networks
//	           192.168.60.1x
//
// br-ext is an Open vSwitch bridge with the tunnel address on its local port:
// the userspace datapath encapsulates by itself and must own that address. With the
// kernel's datapath there is no such bridge, and eth1 has the address.
//
// Nothing of a lab is in the machine's own namespaces, and no state has to be kept:
// each host depends on one process, its init, which the lab finds in /proc by its
// command line, and whose end removes the host's processes, mounts and links.
// So [Down] works after any crash, and labs in different directories are independent. Tests
// have a keeper process do that if they are killed ([Tie]).
//
//	l, err := lab.Up(ctx, lab.Config{Dir: dir, Bin: "bin", Hosts: 3})
//	c, err := l.Attach(ctx, lab.Attachment{Host: "host1", Name: "web", Network: "contiv-net"})
//	out, err := l.Output(ctx, "web", "ping", "-c1", "20.1.1.2")
//	err = lab.Down(ctx, dir)
//
// The command line over it is contiv-lab; what it does is this package's methods.
package lab
