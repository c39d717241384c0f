package systemtests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/test/lab/labtest"
)

const root = "../.." // of the module

// install runs make install-files into a directory of its own.
func install(t *testing.T) (destdir string) {
	t.Helper()
	destdir = t.TempDir()
	labtest.Bin(t)
	out, err := exec.Command("make", "-s", "-C", root, "install-files", "DESTDIR="+destdir).CombinedOutput()
	if err != nil {
		t.Fatalf("make install-files: %v\n%s", err, out)
	}
	return destdir
}

func TestInstall(t *testing.T) {
	destdir := install(t)
	for _, path := range []string{"usr/local/bin/netmaster", "usr/local/bin/netplugin", "usr/local/bin/netctl", "opt/cni/bin/contivk8s", "opt/cni/bin/netcontiv"} {
		out, err := exec.Command(filepath.Join(destdir, path), "--version").Output()
		if err != nil || !regexp.MustCompile(`(?m)\A(netctl version\n|Contiv netplugin version : .+\n)?Version: .+\nGitCommit: .+\nBuildTime: \S+\n\z`).Match(out) {
			t.Errorf("%s --version = %q, %v; want three lines", path, out, err)
		}
	}
	for path, script := range map[string]string{
		"bash-completion/completions/netctl": "netctl.bash", "zsh/site-functions/_netctl": "netctl.zsh", "fish/vendor_completions.d/netctl.fish": "netctl.fish",
	} {
		want, err := os.ReadFile(filepath.Join(root, "cmd/netctl/internal/commands/completion", script))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(destdir, "usr/local/share", path)); err != nil || string(got) != string(want) {
			t.Errorf("%s is not %s: %v", path, script, err)
		}
	}
	settings := filepath.Join(destdir, "etc/contiv/netplugin.env")
	if err := os.WriteFile(settings, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("make", "-s", "-C", root, "install-files", "DESTDIR="+destdir).CombinedOutput(); err != nil {
		t.Fatalf("second make install-files: %v\n%s", err, out)
	}
	if b, err := os.ReadFile(settings); err != nil || string(b) != "mine" {
		t.Errorf("settings after the second install = %q, %v; want them kept", b, err)
	}
}

// TestSwitchUnit: with our settings, systemd starts Debian's Open vSwitch again at once and
// however often.
func TestSwitchUnit(t *testing.T) {
	const name = "ovs-vswitchd.service"
	debian, err := os.ReadFile("/usr/lib/systemd/system/" + name)
	if err != nil {
		t.Fatalf("Debian package openvswitch-switch: %v", err)
	}
	ours, err := os.ReadFile(filepath.Join(install(t), "usr/lib/systemd/system", name+".d/contiv.conf"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, name+".d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string][]byte{name: debian, name + ".d/contiv.conf": ours} {
		if err := os.WriteFile(filepath.Join(dir, path), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("systemd-analyze", "verify", "--man=no", filepath.Join(dir, name))
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "contiv.conf") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	for _, want := range []string{"[Unit]\nStartLimitIntervalSec=0\n", "[Service]\nRestart=on-failure\nRestartSec=100ms\n"} {
		if !strings.Contains(string(ours), want) {
			t.Errorf("no %q in\n%s", want, ours)
		}
	}
}

// TestUnits lets systemd itself read the units.
func TestUnits(t *testing.T) {
	destdir := install(t)
	for _, name := range []string{"netmaster.service", "netplugin.service", "contiv-docker-relay.service"} {
		unit, err := os.ReadFile(filepath.Join(destdir, "usr/lib/systemd/system", name))
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`@[A-Z]+@`).Match(unit) {
			t.Errorf("%s has a placeholder left:\n%s", name, unit)
		}
		// The programs are below DESTDIR, not where the unit will find them.
		here := strings.ReplaceAll(string(unit), "=/usr/local/bin/", "="+destdir+"/usr/local/bin/")
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(here), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("systemd-analyze", "verify", "--man=no", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("systemd-analyze verify %s: %v\n%s", name, err, out)
		}
	}
}

// TestUnitsAreRestricted: systemd finds little that a daemon could do beyond its work. Its
// marks are from 0, nothing, to 10.
func TestUnitsAreRestricted(t *testing.T) {
	destdir := install(t)
	for name, most := range map[string]float64{"netmaster.service": 1.5, "netplugin.service": 3.3, "contiv-docker-relay.service": 1.5} {
		unit, err := os.ReadFile(filepath.Join(destdir, "usr/lib/systemd/system", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := exposure(t, name, unit); got > most {
			t.Errorf("%s is at %.1f, expected %.1f at most: systemd-analyze security says what it could do", name, got, most)
		}
		open := regexp.MustCompile(`(?m)^(Protect|Private|Restrict|SystemCall).*\n`).ReplaceAll(unit, nil)
		if got := exposure(t, name, open); got < most+2 {
			t.Errorf("%s without restrictions is at %.1f", name, got)
		}
	}
}

// exposure is how far a unit is open in the eyes of systemd.
func exposure(t *testing.T, name string, unit []byte) float64 {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, unit, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--no-pager", file).CombinedOutput()
	if err != nil {
		t.Fatalf("systemd-analyze security: %v: %s", err, out)
	}
	found := regexp.MustCompile(`exposure level for \S+: ([0-9.]+)`).FindSubmatch(out)
	if found == nil {
		t.Fatalf("systemd-analyze security said:\n%s", out)
	}
	level, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return level
}

// TestSettings holds that the environment files name every variable a daemon knows,
// and no other.
func TestSettings(t *testing.T) {
	for _, daemon := range []string{"netmaster", "netplugin"} {
		help, err := exec.Command(filepath.Join(labtest.Bin(t), daemon), "--help").Output()
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(root, "scripts/systemd", daemon+".env"))
		if err != nil {
			t.Fatal(err)
		}
		variable := regexp.MustCompile(`CONTIV_[A-Z_]+`)
		if diff := cmp.Diff(names(variable, help), names(variable, b)); diff != "" {
			t.Errorf("variables of %s (-%s --help +%s.env):\n%s", daemon, daemon, daemon, diff)
		}
	}
}

func names(pattern *regexp.Regexp, text []byte) []string {
	var all []string
	for _, m := range pattern.FindAll(text, -1) {
		all = append(all, string(m))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
