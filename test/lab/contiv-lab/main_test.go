package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
	"github.com/contiv/netplugin/test/systemtests/orphans"
)

const runMain = "CONTIV_LAB_TEST_MAIN"

// TestMain lets this test program be contiv-lab, and the init of its hosts.
func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
	}
	if status, played := lab.Play(os.Args); played {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

type session struct {
	t        *testing.T
	dir, bin string
}

// run runs contiv-lab and returns its exit status and what it prints.
func (s session) run(args ...string) (status int, stdout, stderr string) {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	cmd := exec.Command(self, append([]string{"--dir", s.dir}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.Env = append(os.Environ(), runMain+"=1")
	err = cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		s.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

func newSession(t *testing.T) session {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := session{t: t, dir: filepath.Join(t.TempDir(), "lab"), bin: t.TempDir()}
	if err := os.Symlink(self, filepath.Join(s.bin, "contiv-lab")); err != nil {
		t.Fatal(err)
	}
	labtest.Tie(t, self, s.dir)
	return s
}

func TestWrongCommandLines(t *testing.T) {
	s := newSession(t)
	for _, tt := range []struct {
		args   string
		status int
		want   string // part of stderr
	}{
		{"fly", 2, `unknown command "fly"`},
		{"up --wings", 2, "flag provided but not defined: -wings"},
		{"up now", 2, "up: expected arguments"},
		{"up --bare --hosts many", 2, "many"},
		{"attach host1 web", 2, `"network" not set`},
		{"attach host1 --network n", 2, "attach: expected arguments HOST NAME, got 1"},
		{"restart host1", 2, "restart: expected arguments HOST DAEMON, got 1"},
		{"exec", 2, "exec: expected arguments NAME|HOST -- COMMAND…"},
		{"exec host1", 2, "exec: expected arguments"},
		{"status", 1, "no lab in " + s.dir + ": bring one up first"},
		{"exec host1 -- true", 1, "no lab in"},
		{"up --bare --hosts 0x --bin " + s.bin, 2, "0x"},
		{"up --bare --hosts 200 --bin " + s.bin, 1, "hosts 200: expected 1 to 99"},
		{"up --bin " + s.bin, 1, "netmaster is missing: run make build"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			status, stdout, stderr := s.run(strings.Fields(tt.args)...)
			if status != tt.status || !strings.Contains(stderr, tt.want) {
				t.Errorf("status %d, stderr %q; want %d and %q", status, stderr, tt.status, tt.want)
			}
			if stdout != "" {
				t.Errorf("stdout = %q, want nothing", stdout)
			}
		})
	}
	if status, stdout, _ := s.run("down"); status != 0 || stdout != "" {
		t.Errorf("down of no lab: status %d, stdout %q", status, stdout)
	}
	if status, stdout, _ := s.run("--help"); status != 0 || !strings.Contains(stdout, "partition") {
		t.Errorf("--help: status %d, stdout %q", status, stdout)
	}
}

func TestSession(t *testing.T) {
	s := newSession(t)
	marks, err := orphans.Before(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if status, _, stderr := s.run("down"); status != 0 {
			t.Errorf("down: status %d: %s", status, stderr)
		}
		marks.Check(t)
	})
	for _, step := range []struct {
		args   []string
		status int
		out    string // part of stdout
		err    string // part of stderr
	}{
		{args: []string{"up", "--bare", "--hosts", "2", "--bin", s.bin}, err: "2 hosts up after"},
		{args: []string{"up", "--bare", "--bin", s.bin}, status: 1, err: "a lab is in " + s.dir + " already"},
		{args: []string{"status"}, out: "host2  192.168.2.11  192.168.60.11  ovs-vswitchd"},
		{args: []string{"exec", "host1", "--", "sh", "-c", "hostname; exit 7"}, status: 7, out: "host1"},
		{args: []string{"exec", "host2", "hostname"}, out: "host2"},
		{args: []string{"exec", "host1", "--", "sh", "-c", "kill -KILL $$"}, status: 137},
		{args: []string{"exec", "nobody", "--", "true"}, status: 1, err: `"nobody" is neither a host nor an attached container`},
		{args: []string{"exec", "host1", "--", "no-such-program"}, status: 1, err: `program "no-such-program" is not in the host's path`},
		{args: []string{"restart", "host1", "ovs", "--signal", "kill"}},
		{args: []string{"restart", "host1", "ovs", "--signal", "LOUD"}, status: 2, err: `signal "LOUD": expected a name such as TERM or KILL`},
		{args: []string{"stop", "host2", "ovs"}},
		{args: []string{"status"}, out: "ended: "},
		{args: []string{"start", "host2", "ovs"}},
		{args: []string{"start", "host2", "ovs"}, status: 1, err: "ovsdb-server is running with pid"},
		{args: []string{"stop", "host2", "netmaster"}, status: 1, err: `daemon "netmaster": host2 runs ovs`},
		{args: []string{"stop", "host9", "ovs"}, status: 1, err: `host "host9" is not in the lab: expected host1 to host2`},
		{args: []string{"partition", "host2"}},
		{args: []string{"exec", "host1", "--", "ping", "-c1", "-W1", "192.168.2.11"}, status: 1},
		{args: []string{"heal", "host2"}},
		{args: []string{"exec", "host1", "--", "ping", "-c1", "-w10", "192.168.2.11"}, out: " 0% packet loss"},
		{args: []string{"logs", "host1", "ovs"}, out: "ovs-vswitchd"},
		{args: []string{"logs", "host1", "netmaster"}, status: 1, err: "netmaster.log"},
		{args: []string{"detach", "web"}, status: 1, err: "container web is not attached"},
	} {
		t.Run(strings.Join(step.args, " "), func(t *testing.T) {
			status, stdout, stderr := s.run(step.args...)
			if status != step.status || !strings.Contains(stdout, step.out) || !strings.Contains(stderr, step.err) {
				t.Errorf("status %d, stdout %q, stderr %q; want %d, %q, %q", status, stdout, stderr, step.status, step.out, step.err)
			}
		})
	}
	t.Run("status as JSON", func(t *testing.T) {
		_, stdout, _ := s.run("status", "--json")
		var answer struct {
			Hosts []lab.HostStatus
		}
		if err := json.Unmarshal([]byte(stdout), &answer); err != nil || len(answer.Hosts) != 2 || answer.Hosts[0].ControlIP != "192.168.2.10" {
			t.Errorf("status --json = %s (%v)", stdout, err)
		}
	})
}
