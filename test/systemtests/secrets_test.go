package systemtests

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/utils/tlsport"
)

// TestSecretsStayHidden: nothing that is secret in a cluster is in clear in its logs at DEBUG,
// its store, its arguments and environments, its metrics, or what its API shows.
func TestSecretsStayHidden(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, TLS: tlsport.Require, LogLevel: "DEBUG", NetMode: "vlan", FwdMode: "routing"})
	c.logIn("host2")
	const bgp = "bgp-secret-7d1f0c"
	c.run("host1", "printf %s "+bgp+" | netctl --netmaster unix:///run/contiv/netmaster.sock bgp create host2 --router-ip 50.1.1.2/24 --as 65002 --neighbor 50.1.1.1 --neighbor-as 500 --password-file -")
	join := strings.Split(strings.TrimSpace(c.netctlOn("host1", "host", "token", "create")), ".")
	service := strings.TrimSpace(c.netctlOn("host1", "token", "create", "script", "--role", "viewer"))
	c.run("host2", "env "+home+" netctl --netmaster https://"+lab.ControlIP(1).String()+":9999 --ca /etc/contiv/ca.pem net ls")
	first, err := os.ReadFile(c.Masters()[0].File(lab.MasterTLSDir + "/initial-admin-password"))
	if err != nil {
		t.Fatal(err)
	}
	login := c.run("host2", "cat /var/lib/contiv/home/.netctl/* | tr -d ' \n' | sed 's/.*\"token\":\"\\([^\"]*\\)\".*/\\1/'")
	secrets := map[string]string{
		"BGP password": bgp, "join token": join[3], "service token": service, "first password": strings.TrimSpace(string(first)), "login": strings.TrimSpace(login),
	}
	for name, s := range secrets {
		if len(s) < 12 || strings.ContainsAny(s, "{}\" \n") {
			t.Fatalf("%s is %q", name, s)
		}
	}
	seen := func(where string, text []byte) {
		t.Helper()
		for name, s := range secrets {
			if bytes.Contains(text, []byte(s)) {
				t.Errorf("the %s is in %s", name, where)
			}
		}
	}
	for _, h := range c.Hosts() {
		for _, dir := range []string{"/var/log", "/var/lib/contiv"} {
			files(t, h.File(dir), func(path string, text []byte) { seen(h.Name+" "+path, text) })
		}
		for _, file := range []string{"cmdline", "environ"} {
			seen(h.Name+" /proc/*/"+file, []byte(c.run(h.Name, "cat $(ls -d /proc/[0-9]*/"+file+") 2>/dev/null | tr '\\0' '\\n' || true")))
		}
		seen(h.Name+" :9090", []byte(c.run(h.Name, "for p in metrics inspect/driver inspect/agent inspect/bgp; do curl -sk --cert "+lab.AgentTLSDir+"/identity.pem https://127.0.0.1:9090/$p; done")))
	}
	for _, path := range []string{
		"/metrics", "/info", "/api/v1/Bgps/", "/api/v1/Bgps/host2/", "/api/v1/inspect/Bgps/host2/", "/api/v1/security/audit", "/api/v1/security/status",
		"/api/v1/security/tokens", "/api/v1/auth_proxy/local_users/", "/api/v1/auth_proxy/tokens/",
	} {
		out := c.run("host1", "curl -s --unix-socket /run/contiv/netmaster.sock http://netmaster"+path)
		if len(out) == 0 {
			t.Errorf("%s is empty", path)
		}
		seen(path, []byte(out))
	}
	seen("the events", []byte(c.run("host1", "curl -s --max-time 2 --unix-socket /run/contiv/netmaster.sock http://netmaster/api/v1/watch || true")))
	seen("netctl export", []byte(c.netctlOn("host1", "export")))
}

// files reads every file below a directory, but for those that are there to hold a secret.
func files(t *testing.T, dir string, read func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "initial-admin-password" || strings.Contains(path, "/home/.netctl/") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			read(strings.TrimPrefix(path, dir), text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
