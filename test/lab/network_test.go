package lab_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// tunnel connects a hand-made container on each of two hosts with a hand-made VXLAN bridge.
func tunnel(t *testing.T) *lab.Lab {
	l := upBare(t, 2)
	for n, h := range l.Hosts() {
		peer := l.Hosts()[1-n]
		on(t, l, h.Name, fmt.Sprintf(`
			ip netns add c
			ip link add vc type veth peer name eth0 netns c
			ip link set vc up
			ip -n c address add 10.9.9.%[1]d/24 dev eth0
			ip -n c link set eth0 mtu 1450 up
			ip netns exec c ethtool -K eth0 tx off >/dev/null
			ovs-vsctl add-br br-test -- set bridge br-test datapath_type=netdev \
				-- add-port br-test vc \
				-- add-port br-test vx -- set interface vx type=vxlan options:remote_ip=%[2]s options:key=77`,
			h.Number, peer.VTEPIP()))
	}
	return l
}

const across = "ip netns exec c ping -q -c 3 -i 0.2 -w 20 10.9.9.2"

func TestTunnel(t *testing.T) {
	t.Parallel()
	l := tunnel(t)
	on(t, l, "host1", across)
	t.Run("full-size TCP", func(t *testing.T) {
		on(t, l, "host2", "ip netns exec c iperf3 --server --daemon --one-off")
		on(t, l, "host1", `for i in $(seq 50); do ip netns exec c iperf3 --client 10.9.9.2 --bytes 5M && exit 0; sleep 0.1; done; exit 1`)
	})
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run("switch restarted by "+signal.String(), func(t *testing.T) {
			if err := l.Hosts()[0].RestartDaemon(t.Context(), "ovs", signal); err != nil {
				t.Fatal(err)
			}
			if got := on(t, l, "host1", "ip -4 -o address show up dev br-ext | awk '{print $4}'"); got != "192.168.60.10/24" {
				t.Errorf("address of br-ext after the restart = %q", got)
			}
			on(t, l, "host1", across)
		})
	}
	t.Run("partition", func(t *testing.T) {
		if err := l.Partition(t.Context(), "host2"); err != nil {
			t.Fatal(err)
		}
		if out, err := l.Output(t.Context(), "host1", "ip", "netns", "exec", "c", "ping", "-c1", "-W1", "10.9.9.2"); err == nil {
			t.Errorf("a host that was cut off answers:\n%s", out)
		}
		if err := l.Heal(t.Context(), "host2"); err != nil {
			t.Fatal(err)
		}
		on(t, l, "host1", across)
	})
	t.Run("partition of one network", func(t *testing.T) {
		if err := l.Partition(t.Context(), "host2", "control"); err != nil {
			t.Fatal(err)
		}
		if out, err := l.Output(t.Context(), "host1", "ping", "-c1", "-W1", l.Hosts()[1].ControlIP()); err == nil {
			t.Errorf("the control network answers:\n%s", out)
		}
		on(t, l, "host1", across)
		if err := l.Heal(t.Context(), "host2"); err != nil {
			t.Fatal(err)
		}
		if err := l.Partition(t.Context(), "host2", "wifi"); err == nil {
			t.Error("a network that does not exist was cut")
		}
	})
}

func TestTrunkCarriesTags(t *testing.T) {
	t.Parallel()
	l := upBare(t, 2)
	for _, h := range l.Hosts() {
		on(t, l, h.Name, fmt.Sprintf(`
			ovs-vsctl add-br br-test -- set bridge br-test datapath_type=netdev -- add-port br-test eth2 \
				-- add-port br-test v7 tag=7 -- set interface v7 type=internal \
				-- add-port br-test v8 tag=8 -- set interface v8 type=internal
			ip address add 10.7.0.%[1]d/24 dev v7 && ip link set v7 up
			ip address add 10.8.0.%[1]d/24 dev v8 && ip link set v8 up`, h.Number))
	}
	on(t, l, "host1", "ping -q -c 2 -i 0.2 -w 10 10.7.0.2; ping -q -c 2 -i 0.2 -w 10 10.8.0.2")
}
