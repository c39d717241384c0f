package lab_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/hostinit"
	"github.com/contiv/netplugin/utils/errs"
)

func TestHostIsAMachineOfItsOwn(t *testing.T) {
	t.Parallel()
	l := upBare(t, 2)
	for _, tt := range []struct{ name, script, want string }{
		{"name", "hostname; cat /etc/hostname", "host1\nhost1"},
		{"processes", "cat /proc/1/comm | wc -l; ls -d /proc/[0-9]* | wc -l | awk '{print ($1 < 8)}'", "1\n1"},
		{"links", "ls /sys/class/net | grep -x -e eth0 -e eth1 -e eth2 -e br-ext | tr '\\n' ' '", "br-ext eth0 eth1 eth2"},
		{"control address", "ip -4 -o address show eth0 | awk '{print $4}'", "192.168.2.10/24"},
		{"tunnel address", "ip -4 -o address show br-ext | awk '{print $4}'", "192.168.60.10/24"},
		{"other hosts by name", "getent hosts host2 netmaster | awk '{print $1}'", "192.168.2.11\n192.168.2.10"},
		{"cgroups are there", "ls /sys/fs/cgroup | head -n 1 | wc -l", "1"},
		{"own run directory", "ls /run/openvswitch/db.sock", "/run/openvswitch/db.sock"},
		{"datapath", "ovs-vsctl get bridge br-ext datapath_type", "netdev"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := on(t, l, "host1", tt.script); got != tt.want {
				t.Errorf("%s printed %q, want %q", tt.script, got, tt.want)
			}
		})
	}
	t.Run("files stay in the host", func(t *testing.T) {
		for _, path := range []string{"/etc/contiv-lab-test", "/var/contiv-lab-test", "/opt/contiv-lab-test", "/run/contiv-lab-test", "/var/lib/docker/contiv-lab-test"} {
			on(t, l, "host1", "echo mine > "+path)
			if _, err := os.Stat(path); err == nil {
				t.Errorf("%s is on this machine, too", path)
			}
			if out, err := l.Output(t.Context(), "host2", "cat", path); err == nil {
				t.Errorf("%s is on host2, too: %s", path, out)
			}
			if got := on(t, l, "host1", "cat "+path); got != "mine" {
				t.Errorf("host1 reads %q from %s, want what it wrote", got, path)
			}
		}
	})
	t.Run("control network", func(t *testing.T) { on(t, l, "host1", "ping -c 1 -W 5 192.168.2.11") })
	t.Run("dial from the host", func(t *testing.T) {
		host, err := l.Host("host1")
		if err != nil {
			t.Fatal(err)
		}
		conn, err := host.Dial(t.Context(), "tcp", "127.0.0.1:6640")
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	})
}

func TestCommandsInHosts(t *testing.T) {
	t.Parallel()
	l := upBare(t, 1)
	host := l.Hosts()[0]
	var ended *exec.ExitError
	_, err := host.Output(t.Context(), "sh", "-c", "echo out; echo why >&2; exit 7")
	if !errors.As(err, &ended) || ended.ExitCode() != 7 || !strings.Contains(err.Error(), "why") {
		t.Errorf("error = %v, want exit status 7 and what the command said", err)
	}
	if _, err := host.Output(t.Context(), "no-such-program"); !errs.Is(err, errs.NotFound) {
		t.Errorf("error of an unknown program = %v, want kind not found", err)
	}
	if _, err := l.Output(t.Context(), "nobody", "true"); !errs.Is(err, errs.NotFound) {
		t.Errorf("error for an unknown container = %v, want kind not found", err)
	}
	var out strings.Builder
	err = host.Run(t.Context(), lab.Stdio{In: strings.NewReader("hello"), Out: &out, Env: []string{"WHO=lab"}}, "sh", "-c", "cat; echo $WHO")
	if err != nil || out.String() != "hellolab\n" {
		t.Errorf("Run printed %q, error %v; want hellolab", out.String(), err)
	}
}

func TestInitKeepsDaemons(t *testing.T) {
	t.Parallel()
	l := upBare(t, 1)
	host := l.Hosts()[0]
	c := hostinit.NewClient(host.PID())
	ctx := t.Context()

	sleeper := hostinit.Daemon{Name: "sleeper", Args: []string{"sleep", "1000"}, Log: "/var/log/contiv/sleeper.log"}
	first, err := c.Start(ctx, sleeper)
	if err != nil || !first.Running {
		t.Fatalf("Start = %+v, %v", first, err)
	}
	if _, err := c.Start(ctx, sleeper); err == nil || !strings.Contains(err.Error(), "is running with pid") {
		t.Errorf("second Start = %v, want an error that says it is running", err)
	}
	ended, err := c.Stop(ctx, "sleeper", syscall.SIGKILL)
	if err != nil || ended.Running || ended.Exit != "killed" {
		t.Errorf("Stop = %+v, %v; want it killed", ended, err)
	}
	again, err := c.Start(ctx, sleeper)
	if err != nil || again.Starts != 2 || again.PID == first.PID {
		t.Errorf("Start after Stop = %+v, %v; want a second start", again, err)
	}
	if _, err := c.Stop(ctx, "sleeper", syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if _, err := c.Stop(ctx, "sleeper", syscall.SIGTERM); err != nil {
		t.Errorf("Stop of a daemon that has ended: %v", err)
	}

	if _, err := c.Start(ctx, hostinit.Daemon{Name: "brief", Args: []string{"sh", "-c", "echo bye; exit 22"}, Log: "/var/log/contiv/brief.log"}); err != nil {
		t.Fatal(err)
	}
	status, err := c.Exit(ctx, "brief")
	if err != nil || status.Exit != "exit status 22" {
		t.Errorf("Exit = %+v, %v; want exit status 22", status, err)
	}
	b, err := os.ReadFile(host.LogFile("brief"))
	if err != nil || string(b) != "bye\n" {
		t.Errorf("log = %q, %v; want what it printed", b, err)
	}
	if _, err := c.Start(ctx, hostinit.Daemon{Name: "none", Args: []string{"no-such-program"}, Log: "/var/log/contiv/none.log"}); err == nil {
		t.Error("a program that does not exist started")
	}

	// Orphans become the init's children and must not stay as zombies.
	on(t, l, "host1", "sh -c '(sleep 0.01 &) ; (true &)'")
	on(t, l, "host1", "for i in 1 2 3 4 5 6 7 8 9 10; do ps -eo stat | grep -q ^Z || exit 0; sleep 0.1; done; ps -ef; exit 1")
}

func TestStdoutOfLongCommandsCanBeRead(t *testing.T) {
	l := upBare(t, 1)
	r, w := io.Pipe()
	cmd, err := l.Start(t.Context(), "host1", lab.Stdio{Out: w}, "sh", "-c", "echo ready; exec sleep 1000")
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := io.ReadFull(r, line); err != nil || string(line) != "ready\n" {
		t.Fatalf("read %q, %v; want ready", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the command ended well, want killed")
	}
}

func TestLogFilesAreInTheLabDirectory(t *testing.T) {
	l := upBare(t, 1)
	file := l.Hosts()[0].LogFile("ovs")
	if rel, err := filepath.Rel(l.Config().Dir, file); err != nil || strings.HasPrefix(rel, "..") {
		t.Errorf("log is %s, want a file below %s", file, l.Config().Dir)
	}
	b, err := os.ReadFile(file)
	if err != nil || len(b) == 0 {
		t.Errorf("log of ovs-vswitchd: %d bytes, %v", len(b), err)
	}
}
