package ovstest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"
)

// startTimeout limits the start and each command. It is long because the machine may be
// busy.
const startTimeout = 60 * time.Second

// schema is where Debian's package puts the database schema.
const schema = "/usr/share/openvswitch/vswitch.ovsschema"

// Switch is a running Open vSwitch. Its methods fail the test on errors, so they must be
// called from the test's goroutine.
type Switch struct {
	t      testing.TB
	dir    string
	ns     netns.NsHandle
	db, vs *daemon
}

// Start runs an Open vSwitch without bridges until the test ends.
func Start(t testing.TB) *Switch {
	t.Helper()
	dir, err := os.MkdirTemp("", "ovs") // short: it holds sockets, whose paths are limited in length
	if err != nil {
		t.Fatalf("make a directory for the switch: %v", err)
	}
	s := &Switch{t: t, dir: dir, ns: netns.None()}
	t.Cleanup(s.stop)
	s.ns = newNamespace(t)
	s.run("ovsdb-tool", "create", s.path("conf.db"), schema)
	s.db = s.start("ovsdb-server", s.path("conf.db"), "--remote=punix:"+s.DBSocket(),
		"--unixctl="+s.path("ovsdb-server.ctl"))
	s.await(s.DBSocket(), s.db)
	s.Vsctl("--no-wait", "init")
	s.startSwitch()
	return s
}

// startSwitch runs ovs-vswitchd and waits until it has read the database.
func (s *Switch) startSwitch() {
	s.t.Helper()
	s.vs = s.start("ovs-vswitchd", "unix:"+s.DBSocket(), "--disable-system",
		"--unixctl="+s.path("ovs-vswitchd.ctl"))
	s.Vsctl("set", "Open_vSwitch", ".", "external_ids:ovstest=1")
}

// Restart ends ovs-vswitchd with a signal and runs it again: flows, groups and meters are
// lost, bridges and ports are recreated from the database.
func (s *Switch) Restart(sig syscall.Signal) {
	s.t.Helper()
	s.vs.end(sig)
	s.Vsctl("--no-wait", "remove", "Open_vSwitch", ".", "external_ids", "ovstest")
	s.startSwitch()
}

// stop ends the daemons and removes their files.
func (s *Switch) stop() {
	for _, d := range []*daemon{s.vs, s.db} {
		if d != nil {
			d.end(syscall.SIGTERM)
		}
	}
	if s.t.Failed() {
		s.t.Logf("warnings of ovs-vswitchd:\n%s", warnings(s.path("ovs-vswitchd.log")))
	}
	if s.ns.IsOpen() {
		s.ns.Close()
	}
	os.RemoveAll(s.dir)
}

func (s *Switch) path(name string) string { return filepath.Join(s.dir, name) }

// RunDir is the directory of the sockets (OVS_RUNDIR).
func (s *Switch) RunDir() string { return s.dir }

// DBSocket is the path of the OVSDB server's unix socket.
func (s *Switch) DBSocket() string { return s.path("db.sock") }

// Target is the address of a bridge's management socket for ofctrl.Config.
func (s *Switch) Target(bridge string) string { return "unix:" + s.path(bridge+".mgmt") }

// AddBridge creates a bridge with the userspace datapath that forwards nothing by itself
// (fail mode secure). settings are further arguments of "ovs-vsctl set Bridge NAME".
func (s *Switch) AddBridge(name string, settings ...string) {
	s.t.Helper()
	args := []string{
		"add-br", name, "--", "set", "Bridge", name, "datapath_type=netdev", "fail_mode=secure",
		"protocols=OpenFlow10,OpenFlow13,OpenFlow14,OpenFlow15",
	}
	s.Vsctl(append(args, settings...)...)
}

// AddDummyPort adds a port that carries no packets, with a fixed OpenFlow number, for flows
// and traces that use it.
func (s *Switch) AddDummyPort(bridge, name string, ofport string) {
	s.t.Helper()
	s.Vsctl("add-port", bridge, name, "--", "set", "Interface", name, "type=internal", "ofport_request="+ofport)
}

// Vsctl runs ovs-vsctl and returns its output.
func (s *Switch) Vsctl(args ...string) string {
	s.t.Helper()
	return s.run("ovs-vsctl", append([]string{"--db=unix:" + s.DBSocket(), "--retry"}, args...)...)
}

// Ofctl runs "ovs-ofctl -O OpenFlow13" with a command on a bridge and returns its
// output: Ofctl("dump-flows", "br0"), Ofctl("add-flow", "br0", "actions=drop").
func (s *Switch) Ofctl(command, bridge string, args ...string) string {
	s.t.Helper()
	out, err := s.TryOfctl(command, bridge, args...)
	if err != nil {
		s.t.Fatalf("ovs-ofctl %s %s %s: %v\n%s", command, bridge, strings.Join(args, " "), err, out)
	}
	return out
}

// TryOfctl is Ofctl for commands that may fail.
func (s *Switch) TryOfctl(command, bridge string, args ...string) (string, error) {
	s.t.Helper()
	return s.try("ovs-ofctl", append([]string{"-O", "OpenFlow13", command, s.Target(bridge)}, args...)...)
}

// Appctl runs ovs-appctl on ovs-vswitchd and returns its output.
func (s *Switch) Appctl(args ...string) string {
	s.t.Helper()
	return s.run("ovs-appctl", append([]string{"-t", s.path("ovs-vswitchd.ctl")}, args...)...)
}

// Trace returns the output of ofproto/trace for a packet, given in the syntax of flows.
// Further options, such as "--ct-next" and "trk,est", go before the bridge.
func (s *Switch) Trace(bridge, packet string, options ...string) string {
	s.t.Helper()
	return s.Appctl(append(append([]string{"ofproto/trace"}, options...), bridge, packet)...)
}

// DumpFlows returns the flows of a bridge as "ovs-ofctl --no-stats dump-flows" prints
// them, without the heading and without leading blanks.
func (s *Switch) DumpFlows(bridge string) []string {
	s.t.Helper()
	var lines []string
	for line := range strings.Lines(s.run("ovs-ofctl", "-O", "OpenFlow13", "--no-stats", "dump-flows", s.Target(bridge))) {
		if line = strings.TrimSpace(line); strings.Contains(line, "actions=") {
			lines = append(lines, line)
		}
	}
	return lines
}

func (s *Switch) run(name string, args ...string) string {
	s.t.Helper()
	out, err := s.try(name, args...)
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func (s *Switch) try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Env = s.env()
	out, err := c.CombinedOutput()
	return string(out), err
}

func (s *Switch) env() []string {
	return append(os.Environ(), "OVS_RUNDIR="+s.dir, "OVS_DBDIR="+s.dir, "OVS_LOGDIR="+s.dir, "OVS_SYSCONFDIR="+s.dir)
}

// warnings returns the last lines of a log at warning level or above.
func warnings(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(string(b)) {
		if !strings.Contains(line, "|INFO|") && !strings.Contains(line, "|DBG|") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-30):], "")
}

// await waits until a daemon has created its socket. ovs-vsctl could wait itself, but
// retries only once a second.
func (s *Switch) await(socket string, d *daemon) {
	s.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(startTimeout)
	for {
		if _, err := os.Stat(socket); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-d.done:
			s.t.Fatalf("%s ended before it made %s", d.cmd.Path, socket)
		case <-limit:
			s.t.Fatalf("%s has not made %s in %v", d.cmd.Path, socket, startTimeout)
		}
	}
}
