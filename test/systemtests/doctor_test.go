package systemtests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/test/lab"
)

// doctor asks netctl what is wrong.
func (c cluster) doctor(args ...string) (r doctorapi.Report, status int, err error) {
	out, err := c.NetctlOutput(c.t.Context(), append([]string{"doctor", "--json"}, args...)...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return r, status, fmt.Errorf("netctl doctor %v prints %q: %w", args, out, err)
	}
	return r, status, nil
}

// finds waits until netctl doctor finds exactly this: CODE OBJECT, sorted by weight.
func (c cluster) finds(status int, want ...string) doctorapi.Report {
	c.t.Helper()
	return c.findsBy(func(f doctorapi.Finding) string { return f.Code + " " + f.Object }, status, want)
}

// findsKinds is finds by CODE alone.
func (c cluster) findsKinds(status int, want ...string) doctorapi.Report {
	c.t.Helper()
	return c.findsBy(func(f doctorapi.Finding) string { return f.Code }, status, want)
}

func (c cluster) findsBy(name func(doctorapi.Finding) string, status int, want []string) doctorapi.Report {
	c.t.Helper()
	var last doctorapi.Report
	c.eventually(fmt.Sprintf("netctl doctor finds %q", want), func() error {
		r, got, err := c.doctor()
		if err != nil {
			return err
		}
		found := []string{}
		for _, f := range r.Findings {
			if found = append(found, name(f)); f.Text == "" || f.Do == "" {
				return fmt.Errorf("it does not say what is wrong or what to do: %+v", f)
			}
		}
		if !slices.Equal(found, want) && len(found)+len(want) > 0 || got != status {
			return fmt.Errorf("it finds %q with status %d, want %d: %+v", found, got, status, r.Findings)
		}
		last = r
		return nil
	})
	return last
}

// TestDoctor: netctl doctor finds nothing in a cluster that is well, and what is broken on
// purpose, and says which hosts it could not ask.
func TestDoctor(t *testing.T) {
	c := up(t, lab.Config{Hosts: 3, Masters: 3})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--wait")
	c.attach("host1", "a", "net")
	c.attach("host2", "b", "net")
	c.finds(0)
	if out := c.netctl("doctor"); out != "Nothing is wrong.\nAsked: host1, host2, host3.\n" {
		t.Errorf("netctl doctor prints %q", out)
	}

	t.Run("flows", func(t *testing.T) { cluster{c.Lab, t}.doctorFlows() })
	t.Run("switch", func(t *testing.T) { cluster{c.Lab, t}.doctorSwitch() })
	t.Run("tunnels", func(t *testing.T) { cluster{c.Lab, t}.doctorTunnels() })
	t.Run("ports", func(t *testing.T) { cluster{c.Lab, t}.doctorPorts() })
	t.Run("store", func(t *testing.T) { cluster{c.Lab, t}.doctorStore() })
	t.Run("alarm", func(t *testing.T) { cluster{c.Lab, t}.doctorAlarm() })
	t.Run("agent", func(t *testing.T) { cluster{c.Lab, t}.doctorAgent() })
}

const vxlanBridgeOf = "bridge contivVxlanBridge of host "

// doctorFlows: somebody adds and deletes flows by hand.
func (c cluster) doctorFlows() {
	c.run("host1", "ovs-ofctl -O OpenFlow13 add-flow contivVxlanBridge table=0,priority=1,in_port=7,actions=drop")
	c.finds(1, "flows-foreign "+vxlanBridgeOf+"host1")
	c.run("host1", "ovs-ofctl -O OpenFlow13 --strict del-flows contivVxlanBridge table=0,priority=1,in_port=7")
	c.finds(0)
	c.run("host1", "ovs-ofctl -O OpenFlow13 del-flows contivVxlanBridge udp")
	c.finds(2, "flows-missing "+vxlanBridgeOf+"host1")
	c.restart("host1", "netplugin", syscall.SIGTERM) // which is what is to be done
	c.finds(0)
}

// doctorSwitch: ovs-vswitchd exits, and comes back without flows.
func (c cluster) doctorSwitch() {
	c.run("host1", "kill -9 "+c.vswitchd("host1"))
	c.finds(1, "switch-restarted bridge contivVlanBridge of host host1", "switch-restarted "+vxlanBridgeOf+"host1")
	c.restart("host1", "netplugin", syscall.SIGTERM)
	c.finds(0)
}

// doctorTunnels: something on the way drops what one host sends to another, then in both
// directions, and then large packets only; and the interface with the tunnel address gets a
// smaller MTU than containers have.
func (c cluster) doctorTunnels() {
	drop := func(from string) string {
		return fmt.Sprintf("ovs-ofctl add-flow br-ext priority=100,udp,nw_src=%s,tp_dst=4789,actions=drop", from)
	}
	c.run("host1", drop("192.168.60.11"))
	c.finds(2, "tunnel-one-way tunnel from host host2 to host host1")
	c.run("host2", drop("192.168.60.10"))
	c.finds(2, "tunnel-down tunnel from host host1 to host host2")
	for _, host := range []string{"host1", "host2"} {
		c.run(host, "ovs-ofctl del-flows br-ext udp")
	}
	c.finds(0)
	c.run("host2", "ip link set "+c.Config().TunnelInterface()+" mtu 1400")
	c.finds(2, "mtu-too-large host host2")
	c.run("host2", "ip link set "+c.Config().TunnelInterface()+" mtu 1500")
	c.finds(0)
}

// doctorPorts: somebody deletes the port of a container, whose runtime knows nothing of it.
func (c cluster) doctorPorts() {
	spare := c.attach("host3", "spare", "net")
	c.finds(0)
	port := strings.TrimSpace(c.run("host3", "ovs-vsctl --bare --columns=name find interface external_ids:contiv-container="+spare.ContainerID))
	c.run("host3", "ovs-vsctl del-port "+port)
	r := c.findsKinds(1, "endpoint-without-port")
	if f := r.Findings[0]; !strings.Contains(f.Object, "net.default-spare") {
		c.t.Errorf("it names %q", f.Object)
	}
	if err := c.Detach(c.t.Context(), "spare"); err != nil {
		c.t.Fatal(err)
	}
	c.finds(0)
}

// doctorStore: a member of the store is lost, and comes back.
func (c cluster) doctorStore() {
	h, err := c.Host("host3")
	if err != nil {
		c.t.Fatal(err)
	}
	if err := h.StopDaemon(c.t.Context(), "netmaster", syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	// Its registration ends with its lease.
	c.finds(2, "store-member-lost store member host3", "netmaster-gone netmaster "+h.ControlIP()+":9999")
	if err := h.StartDaemon(c.t.Context(), "netmaster"); err != nil {
		c.t.Fatal(err)
	}
	c.finds(0)
}

// doctorAlarm: a member of etcd says that its database is full.
func (c cluster) doctorAlarm() {
	h, err := c.Host("host1")
	if err != nil {
		c.t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{
		Context: c.t.Context(), Endpoints: []string{h.ControlIP() + ":2379"}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return h.Dial(ctx, "tcp", addr) })},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	members, err := client.MemberList(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	member := members.Members[0]
	alarm := func(action etcdserverpb.AlarmRequest_AlarmAction) {
		c.t.Helper()
		req := &etcdserverpb.AlarmRequest{Action: action, MemberID: member.ID, Alarm: etcdserverpb.AlarmType_NOSPACE}
		if _, err := etcdserverpb.NewMaintenanceClient(client.ActiveConnection()).Alarm(c.t.Context(), req); err != nil {
			c.t.Fatal(err)
		}
	}
	alarm(etcdserverpb.AlarmRequest_ACTIVATE)
	c.finds(2, "store-no-space store member "+member.Name)
	alarm(etcdserverpb.AlarmRequest_DEACTIVATE)
	c.finds(0)
}

// TestDoctorConsul: the servers of Consul are members of the store.
func TestDoctorConsul(t *testing.T) {
	c := up(t, lab.Config{Hosts: 3, Masters: 3, Store: lab.StoreConsul})
	c.finds(0)
	h, err := c.Host("host3")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.StopDaemon(t.Context(), "consul", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.eventually("the server that is lost is found", func() error {
		r, status, err := c.doctor()
		if err != nil || status != 2 || !slices.ContainsFunc(r.Findings, func(f doctorapi.Finding) bool {
			return f.Code == "store-member-lost" && f.Object == "store member host3" && strings.Contains(f.Text, "the store has 3 members and needs 2")
		}) {
			return fmt.Errorf("%d %+v %w", status, r.Findings, err)
		}
		return nil
	})
}

// doctorAgent: an agent is stopped, and the other host is examined all the same.
func (c cluster) doctorAgent() {
	h, err := c.Host("host2")
	if err != nil {
		c.t.Fatal(err)
	}
	if err := h.StopDaemon(c.t.Context(), "netplugin", syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	r := c.finds(2, "host-away host host2")
	if !slices.Equal(r.Asked, []string{"host1", "host3"}) || len(r.Away) != 1 || r.Away[0].Host != "host2" {
		c.t.Errorf("asked are %v, away %v", r.Asked, r.Away)
	}
	if out, _ := c.NetctlOutput(c.t.Context(), "doctor"); !strings.Contains(out, "error: host host2: ") || !strings.HasSuffix(out, "Asked: host1, host3. Not checked, since they do not answer: host2.\n") {
		c.t.Errorf("netctl doctor prints %q", out)
	}
	if r, status, err := c.doctor("--host", "host1"); err != nil || status != 0 || len(r.Findings) > 0 {
		c.t.Errorf("of host1 alone: %d %+v %v", status, r, err)
	}
	start := func() {
		c.t.Helper()
		if err := h.StartDaemon(c.t.Context(), "netplugin"); err != nil {
			c.t.Fatal(err)
		}
		c.finds(0)
	}
	start()
	if err := h.StopDaemon(c.t.Context(), "netplugin", syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	c.finds(2, "host-gone host host2")
	start()
}
