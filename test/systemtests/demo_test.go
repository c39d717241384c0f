package systemtests

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
	"github.com/contiv/netplugin/test/systemtests/orphans"
)

// TestDemo runs the demo as a new user does: with docker containers, then again, over what
// is there, without an Engine. It removes it, and the page goes with it.
func TestDemo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	labtest.Tie(t, filepath.Join(labtest.Bin(t), "contiv-lab"), dir)
	marks, err := orphans.Before(dir)
	if err != nil {
		t.Fatal(err)
	}
	demo := func(engine string, args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(root, "scripts/demo"), args...)
		cmd.Env = append(os.Environ(), "DEMO_DIR="+dir, "DEMO_DOCKER="+engine, "DEMO_PAGE=127.0.0.1:0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("demo %v: %v\n%s", args, err, out)
		} else if len(args) == 0 {
			seesDemo(t, dir, string(out))
		}
		return string(out)
	}
	var first, second string
	t.Cleanup(func() {
		demo("", "down")
		marks.Check(t)
		closed(t, pageOf(first), pageOf(second))
	})
	first = demo("")
	if !strings.Contains(first, "docker exec web ping -c 3 -i 0.2 -W 2 db\n     3 packets") {
		t.Errorf("no container pings another one by name:\n%s", first)
	}
	second = demo("none")
	if !strings.Contains(second, "attach host1 web --network contiv-net") {
		t.Errorf("without an Engine no container is attached:\n%s", second)
	}
	l, err := lab.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := marks.Note(l); err != nil {
		t.Error(err)
	}
}

// seesDemo: at its end the demo shows the connections that it made, with what decided, and the
// address of the page, where one can log in.
func seesDemo(t *testing.T, dir, out string) {
	t.Helper()
	if !strings.Contains(out, "the lab is up") {
		t.Errorf("the demo does not say that it is done:\n%s", out)
	}
	for _, want := range []string{
		`denied +tcp +web \(20\.1\.1\.1\) +shop \(20\.1\.1\.4:22\) +source: only-http/1 `,
		`allowed +tcp +web \(20\.1\.1\.1\) +shop \(20\.1\.1\.4:80\) +source: only-http/2; destination: only-http/2 +host1,host3\n`,
		`allowed +icmp +web \(20\.1\.1\.1\) +db \(20\.1\.1\.2 type 8\) +source: default; `,
		`allowed +icmp +blue-web \(20\.1\.1\.1\) +blue-db \(20\.1\.1\.2 type 8\) +source: default; `,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the demo does not show %s:\n%s", want, out)
		}
	}
	page, password := pageOf(out), passwordCommand.FindString(out)
	if page == "" || password == "" {
		t.Fatalf("the demo does not say where the page is and how to log in:\n%s", out)
	}
	script := `umask 077; export HOME="$OWN"; ` + password + ` >"$OWN/password"
		ca="$DIR/$ROOTS"; curl -sSf --cacert "$ca" "https://$PAGE/ui/" | grep -q "<title>Contiv</title>"
		netctl() { "$BIN/netctl" --netmaster "https://$PAGE" --ca "$ca" "$@"; }
		netctl login --user admin --password-stdin <"$OWN/password" && netctl whoami`
	l, err := lab.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = root // commands are shown as they are typed there
	cmd.Env = append(os.Environ(), "OWN="+t.TempDir(), "PAGE="+page, "BIN="+labtest.Bin(t), "DIR="+l.Masters()[0].File(lab.MasterTLSDir), "ROOTS=roots.pem")
	if text, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(text), "admin") {
		t.Errorf("log in at the page, %s: %v\n%s", page, err, text)
	}
}

// passwordCommand finds the command that prints the password.
var passwordCommand = regexp.MustCompile(`(?m)^ +bin/contiv-lab .*/initial-admin-password$`)

// pageOf is the address and port of the page, "" if none is told.
func pageOf(out string) string {
	m := regexp.MustCompile(`(?m)^The page is at https://(127\.0\.0\.1:\d+)/ui/$`).FindStringSubmatch(out)
	if m == nil {
		return ""
	}
	return m[1]
}

// closed: nothing of a lab that is gone listens on this machine.
func closed(t *testing.T, addresses ...string) {
	t.Helper()
	for _, address := range addresses {
		eventually.Succeeds(t, address+" is closed", func() error {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				return errors.Join(errors.New("something listens"), conn.Close())
			}
			return nil
		})
	}
}
