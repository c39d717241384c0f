package systemtests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/test/eventually"
)

// systemd is the first process of a host of its own, on which Contiv has been installed.
type systemd struct {
	t    *testing.T
	pid  string
	base string // scheme://address of the daemons
}

// boot starts systemd with what make install-files installs, and these settings.
func boot(t *testing.T, settings map[string]string) systemd {
	t.Helper()
	destdir, work := install(t), t.TempDir()
	for daemon, text := range settings {
		if err := os.WriteFile(filepath.Join(destdir, "etc/contiv", daemon+".env"), []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	cgroup, release := newCgroup(t)
	t.Cleanup(release)
	var said bytes.Buffer
	script := fmt.Sprintf("echo $$ >%s/cgroup.procs; exec unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child bash testdata/systemd %s %s", cgroup, destdir, work)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	c := exec.CommandContext(ctx, "sh", "-ec", script)
	c.Stdout, c.Stderr, c.WaitDelay = &said, &said, time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("systemd said:\n%s", said.String())
		}
	})
	s := systemd{t: t}
	eventually.Succeeds(t, "systemd runs", func() error {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", c.Process.Pid))
		if err != nil {
			return err
		}
		s.pid = strings.TrimSpace(string(b))
		out, err := s.try("", "systemctl", "is-system-running")
		if state := strings.TrimSpace(out); state != "running" {
			return fmt.Errorf("it is %q: %v", state, err)
		}
		return nil
	})
	t.Cleanup(func() {
		if t.Failed() {
			out, err := s.try("", "sh", "-c", "systemctl --no-pager status netmaster netplugin contiv-docker-relay; tail -n 30 /run/*.log")
			t.Logf("%s%v", out, err)
		}
	})
	return s
}

// newCgroup makes a control group, and returns what removes it when all of it has ended.
func newCgroup(t *testing.T) (dir string, release func()) {
	t.Helper()
	top := "/sys/fs/cgroup"
	var fs unix.Statfs_t
	if err := unix.Statfs(top, &fs); err != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		top = "/sys/fs/cgroup/unified" // beside those of version 1
	}
	dir, err := os.MkdirTemp(top, "contiv-test-")
	if err != nil {
		t.Fatal(err)
	}
	return dir, func() {
		eventually.Succeeds(t, "control groups are empty", func() error {
			out, err := exec.Command("find", dir, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").CombinedOutput()
			if len(out) > 0 {
				return errors.New(string(out))
			}
			return err
		})
	}
}

// try runs a command on the host.
func (s systemd) try(stdin string, command ...string) (string, error) {
	c := exec.CommandContext(s.t.Context(), "nsenter", append([]string{"-t", s.pid, "-m", "-p", "-n", "-u", "-i", "-C"}, command...)...)
	if s.t.Context().Err() != nil { // the test is over
		c = exec.Command(c.Args[0], c.Args[1:]...)
	}
	c.Env = []string{"PATH=/usr/local/bin:/opt/cni/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	if strings.HasPrefix(s.base, "http:") { // else root goes by netmaster's socket
		c.Env = append(c.Env, "NETMASTER="+s.base+":9999")
	}
	c.Stdin = strings.NewReader(stdin)
	out, err := c.CombinedOutput()
	return string(out), err
}

func (s systemd) do(command ...string) string {
	s.t.Helper()
	out, err := s.try("", command...)
	if err != nil {
		s.t.Fatalf("%s: %v: %s", strings.Join(command, " "), err, out)
	}
	return out
}

// ready waits until netmaster and the agent say that they are.
func (s systemd) ready() {
	s.t.Helper()
	for _, port := range []string{"9999", "9090"} {
		s.answers(s.base + ":" + port + "/readyz")
	}
}

func (s systemd) answers(url string) {
	s.t.Helper()
	eventually.Succeeds(s.t, url, func() error {
		out, err := s.try("", "curl", "-ksS", "--fail-with-body", url)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// attach runs the CNI plugin for a network namespace, as a container runtime does.
func (s systemd) attach(name string) {
	s.t.Helper()
	s.do("ip", "netns", "add", name)
	conf := `{"cniVersion": "1.0.0", "name": "contiv-net", "type": "contivk8s", "contiv": {"network": "blue"}}`
	out, err := s.try(conf, "env", "CNI_COMMAND=ADD", "CNI_CONTAINERID="+name, "CNI_NETNS=/run/netns/"+name, "CNI_IFNAME=eth0", "CNI_PATH=/opt/cni/bin", "/opt/cni/bin/contivk8s")
	if err != nil {
		s.t.Fatalf("attach %s: %v: %s", name, err, out)
	}
}

// status is a line of a daemon's /proc/PID/status, without its name.
func (s systemd) status(unit, field string) string {
	s.t.Helper()
	pid := strings.TrimSpace(s.do("systemctl", "show", "-P", "MainPID", unit))
	for line := range strings.Lines(s.do("cat", "/proc/"+pid+"/status")) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	s.t.Fatalf("%s has no %s", unit, field)
	return ""
}

// TestUnitsRun: under systemd, with all the restrictions of their units, the daemons do
// their work.
func TestUnitsRun(t *testing.T) {
	for _, tls := range []string{"off", "accept", "require"} {
		t.Run("tls "+tls, func(t *testing.T) { unitsRun(t, tls) })
	}
}

func unitsRun(t *testing.T, tls string) {
	const modes = "CONTIV_%[1]s_MODE=test\nCONTIV_%[1]s_NET_MODE=vxlan\nCONTIV_%[1]s_FORWARD_MODE=routing\nCONTIV_%[1]s_TLS=%[2]s\n"
	s := boot(t, map[string]string{
		"netmaster": fmt.Sprintf(modes, "NETMASTER", tls) + "CONTIV_NETMASTER_STORE=embedded\nCONTIV_NETMASTER_STORE_LISTEN=192.0.2.1:2379\nCONTIV_NETMASTER_INTERNAL_ADDRESS=192.0.2.1:9999\n",
		"netplugin": fmt.Sprintf(modes, "NETPLUGIN", tls) + "CONTIV_NETPLUGIN_CONTROL_IP=192.0.2.1\nCONTIV_NETPLUGIN_VTEP_IP=192.0.2.1\nCONTIV_NETPLUGIN_ETCD_ENDPOINTS=http://192.0.2.1:2379\n" +
			"CONTIV_NETPLUGIN_DOCKER_PLUGIN_SOCKET=/run/contiv/docker-plugin.sock\n",
	})
	s.base = "http://192.0.2.1"
	if tls == "require" {
		s.base = "https://192.0.2.1"
	}
	s.do("systemctl", "start", "openvswitch-switch", "netmaster", "netplugin", "contiv-docker-relay")
	s.ready()
	for _, unit := range []string{"netmaster", "netplugin", "contiv-docker-relay"} {
		if filter, privileges := s.status(unit, "Seccomp"), s.status(unit, "NoNewPrivs"); filter != "2" || privileges != "1" {
			t.Errorf("%s: Seccomp %s, NoNewPrivs %s, want 2 and 1", unit, filter, privileges)
		}
		const dacOverride = 1 << unix.CAP_DAC_OVERRIDE
		got, err := strconv.ParseUint(s.status(unit, "CapEff"), 16, 64)
		if err != nil || unit == "netmaster" && got != 0 || unit == "contiv-docker-relay" && got != dacOverride || got&(1<<unix.CAP_SYS_MODULE|1<<unix.CAP_MKNOD|1<<unix.CAP_SYS_CHROOT) != 0 {
			t.Errorf("%s has capabilities %#x, %v", unit, got, err)
		}
	}
	if uid := strings.Fields(s.status("netmaster", "Uid"))[0]; uid == "0" {
		t.Error("netmaster runs as root")
	}

	if tls != "off" {
		s.keepsKeys()
	}
	if tls == "require" {
		s.refusesStrangers()
	}
	s.do("netctl", "net", "create", "--subnet", "20.1.0.0/16", "--gateway", "20.1.0.1", "blue")
	s.attach("a")
	s.attach("b")
	const far = "20.1.0.3"
	if out := s.do("ip", "netns", "exec", "b", "ip", "-4", "-o", "address", "show", "dev", "eth0"); !strings.Contains(out, far+"/16") {
		t.Fatalf("b has %s, want %s", out, far)
	}
	s.do("ip", "netns", "exec", "a", "ping", "-c", "3", far)

	s.keepsSockets()
	s.ready()
	s.do("ip", "netns", "exec", "a", "ping", "-c", "3", far)
	for _, daemon := range []string{"netmaster", "netplugin", "contiv-docker-relay"} {
		if out := s.do("cat", "/run/"+daemon+".log"); strings.Contains(out, "operation not permitted") || strings.Contains(out, "read-only file system") {
			t.Errorf("%s was refused something:\n%s", daemon, out)
		}
	}
}

// keepsKeys: both daemons have got certificates, and only they can read their keys.
func (s systemd) keepsKeys() {
	s.t.Helper()
	for _, dir := range []string{"/var/lib/contiv/tls", "/var/lib/contiv/tls-agent"} {
		eventually.Succeeds(s.t, "a key in "+dir, func() error {
			out, err := s.try("", "grep", "-rl", "PRIVATE KEY", dir)
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
		if out := s.do("find", dir, "-type", "f", "-perm", "/077"); out != "" {
			s.t.Errorf("others can read %s", out)
		}
	}
	s.do("test", "-S", "/run/contiv/netmaster.sock")
}

// refusesStrangers: who has neither a certificate nor a login gets nothing, by TLS or without.
func (s systemd) refusesStrangers() {
	s.t.Helper()
	for url, want := range map[string]string{
		"http://192.0.2.1:9999/api/v1/networks/": "400", "https://192.0.2.1:9999/api/v1/networks/": "400",
		"http://192.0.2.1:9090/inspect/driver": "400", "https://192.0.2.1:9090/inspect/driver": "403",
	} {
		if out := s.do("curl", "-ksS", "-o", "/dev/null", "-w", "%{http_code}", url); out != want {
			s.t.Errorf("%s: status %s, expected %s", url, out, want)
		}
	}
	if out, err := s.try("", "curl", "-ksS", "https://192.0.2.1:2379/version"); err == nil {
		s.t.Errorf("the store answers a stranger: %s", out)
	}
}

// keepsSockets: no unit takes another's files below /run/contiv with it when it stops.
func (s systemd) keepsSockets() {
	s.t.Helper()
	s.do("setpriv", "--reuid=contiv", "--regid=contiv", "--clear-groups", "touch", "/run/contiv/of-netmaster")
	s.do("touch", "/run/contiv/of-another")
	s.do("systemctl", "restart", "netplugin", "netmaster", "contiv-docker-relay")
	s.do("systemctl", "stop", "netplugin", "netmaster")
	for _, name := range []string{"of-netmaster", "of-another"} {
		s.do("test", "-e", "/run/contiv/"+name)
	}
	if out, err := s.try("", "setpriv", "--reuid=contiv", "--regid=contiv", "--clear-groups", "rm", "/run/contiv/of-another"); err == nil {
		s.t.Errorf("netmaster's user removed a file of netplugin: %s", out)
	}
	s.do("systemctl", "start", "netplugin", "netmaster")
}
