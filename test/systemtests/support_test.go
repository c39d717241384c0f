package systemtests

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/utils/tlsport"
)

// TestSupportBundle: a bundle has what netmaster and the agents know, names the host that does
// not answer, and none of the secrets that the cluster has.
func TestSupportBundle(t *testing.T) {
	const password, bgpPassword = "Pa55-of-a-user-9f3", "Pa55-of-bgp-7c1"
	c := up(t, lab.Config{Hosts: 3, TLS: tlsport.Require})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--wait")
	c.attach("host2", "b", "net")
	token := strings.TrimSpace(c.netctl("host", "token", "create"))
	c.run("host1", fmt.Sprintf("printf '%%s\n' %s | netctl user create jane --password-stdin", password))
	c.run("host1", fmt.Sprintf("printf '%%s\\n' %s | netctl bgp create host1 --router-ip=50.1.1.1/24 --as=65002 --neighbor-as=500 --neighbor=50.1.1.2 --password-file=-", bgpPassword))
	h, err := c.Host("host3")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.StopDaemon(t.Context(), "netplugin", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c.run("host1", "cd "+dir+" && netctl support-bundle -o bundle.tar.gz >/dev/null && tar xzf bundle.tar.gz")

	all := c.run("host1", "cd "+dir+"/contiv-support && find . -type f | sort")
	for _, want := range []string{
		"manifest.json", "doctor.json", "cluster.json", "store.json", "netmaster/flags.txt",
		"hosts/host2/driver.json", "hosts/host2/flows.txt", "hosts/host2/ovsdb.txt", "hosts/host2/flags.txt", "hosts/host2/metrics.txt", "hosts/host2/log.txt", "netmaster/log.txt",
	} {
		if !strings.Contains(all, "./"+want+"\n") && !strings.HasSuffix(all, "./"+want) {
			t.Errorf("no %s in the bundle: %s", want, all)
		}
	}
	for file, want := range map[string]string{
		"manifest.json": `"host": "host3"`, "hosts/host2/flows.txt": "contivVxlanBridge", "hosts/host2/ovsdb.txt": "vvport", "hosts/host2/flags.txt": "--vtep-ip", "hosts/host2/log.txt": "netplugin started", "netmaster/log.txt": "level=info", "store.json": "net.default", "doctor.json": "host-away",
	} {
		if text := c.run("host1", "cat "+dir+"/contiv-support/"+file); !strings.Contains(text, want) {
			t.Errorf("%s does not say %q: %.2000s", file, want, text)
		}
	}
	secrets := map[string]string{"the user's password": password, "the BGP password": bgpPassword, "the join token": token}
	secrets["the key of host2"] = strings.TrimSpace(c.run("host2", "grep -rh -A1 -- '-----BEGIN.*PRIVATE KEY' /var/lib/contiv | grep -E '^[A-Za-z0-9+/=]{40,}' | head -1"))
	for what, secret := range secrets {
		if len(secret) < 8 {
			t.Errorf("%s was not found: %q", what, secret)
			continue
		}
		if found, _ := c.Output(t.Context(), "host1", "grep", "-rlF", "--", secret, dir+"/contiv-support"); found != "" {
			t.Errorf("%s is in %s", what, found)
		}
	}
	if found, _ := c.Output(t.Context(), "host1", "grep", "-rl", "PRIVATE KEY", dir+"/contiv-support"); found != "" {
		t.Errorf("a private key is in %s", found)
	}
}
