package systemtests

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
)

// sees listens on a link of a host, and returns what waits for the first frame that the
// filter lets through.
func (c cluster) sees(host, link, filter string) (frame func() string) {
	c.t.Helper()
	var out, errOut buffer
	cmd, err := c.Start(c.t.Context(), host, lab.Stdio{Out: &out, Err: &errOut},
		"tcpdump", "-l", "-n", "-e", "-c", "1", "--immediate-mode", "-i", link, filter)
	if err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	c.eventually("tcpdump listens", func() error {
		if strings.Contains(errOut.String(), "listening") {
			return nil
		}
		return errors.New("it does not yet")
	})
	return func() string {
		c.t.Helper()
		select {
		case <-ended:
		case <-time.After(eventually.Scaled(time.Minute)):
			c.t.Fatalf("no frame on %s of %s: %s", link, host, filter)
		}
		return strings.TrimSpace(out.String())
	}
}

// TestAnnouncements: in the VLAN mode bridge the network outside learns of a container
// when it appears, and again when a netmaster asks for it.
func TestAnnouncements(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, NetMode: "vlan", FwdMode: "bridge"})
	c.netctl("net", "create", "office", "--encap", "vlan", "--pkt-tag", "100", "--subnet=40.1.1.0/24", "--gateway=40.1.1.254", "--subnetv6=2001:db8:4::/100")
	arp := c.sees("host2", "eth2", "vlan 100 and arp and arp[6:2] = 1 and arp[14:4] = arp[24:4]")
	advert := c.sees("host2", "eth2", "vlan 100 and icmp6 and ip6[40] = 136 and dst host ff02::1")
	a := c.attach("host1", "a", "office")
	if got := arp(); !strings.Contains(got, a.IPv4) {
		t.Errorf("the gratuitous ARP is %q, want %s", got, a.IPv4)
	}
	if got := advert(); !strings.Contains(got, a.IPv6) {
		t.Errorf("the neighbor advertisement is %q, want %s", got, a.IPv6)
	}
	again := c.sees("host2", "eth2", "vlan 100 and arp and arp[6:2] = 1 and arp[14:4] = arp[24:4]")
	h, err := c.Host("host1")
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"9002", "9003"} {
		answer := c.run("host1", "curl -sf -XPOST http://"+h.ControlIP()+":"+port+`/announce -d '{"group":0}'`)
		if strings.TrimSpace(answer) != `{"endpoints":1}` {
			t.Errorf("port %s answers %s", port, answer)
		}
	}
	if got := again(); !strings.Contains(got, a.IPv4) {
		t.Errorf("the gratuitous ARP on demand is %q, want %s", got, a.IPv4)
	}
}

// TestAnnouncedWhenTheUplinkIsBack: while its only uplink was down the network outside may
// have forgotten who is on a host, so the host tells it again.
func TestAnnouncedWhenTheUplinkIsBack(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, NetMode: "vlan", FwdMode: "bridge"})
	c.netctl("net", "create", "office", "--encap", "vlan", "--pkt-tag", "100", "--subnet=40.1.1.0/24", "--gateway=40.1.1.254", "--subnetv6=2001:db8:4::/100")
	a, b := c.attach("host1", "a", "office"), c.attach("host2", "b", "office")
	c.reaches("a", b.IPv4)
	if err := c.Partition(t.Context(), "host1", "trunk"); err != nil {
		t.Fatal(err)
	}
	c.becomes("host1", "ovs-vsctl get interface eth2 link_state | grep -x down")
	c.reachesNot("a", b.IPv4)
	arp := c.sees("host2", "eth2", "vlan 100 and arp and arp[6:2] = 1 and arp[14:4] = arp[24:4]")
	advert := c.sees("host2", "eth2", "vlan 100 and icmp6 and ip6[40] = 136 and dst host ff02::1")
	if err := c.Heal(t.Context(), "host1", "trunk"); err != nil {
		t.Fatal(err)
	}
	if got := arp(); !strings.Contains(got, a.IPv4) {
		t.Errorf("the gratuitous ARP is %q, want %s", got, a.IPv4)
	}
	if got := advert(); !strings.Contains(got, a.IPv6) {
		t.Errorf("the neighbor advertisement is %q, want %s", got, a.IPv6)
	}
	c.reaches("a", b.IPv4)
}
