package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
	"github.com/contiv/netplugin/utils/errs"
)

// plugin takes the place of contivk8s: the reference plugin ptp, told by the network
// named in the configuration which subnet to use, or to refuse.
const plugin = `#!/bin/sh
set -e
conf=$(cat)
network=$(echo "$conf" | jq -r .contiv.network)
if [ "$network" = none ] && [ "$CNI_COMMAND" = ADD ]; then
	echo '{"cniVersion":"1.0.0","code":101,"msg":"Contiv:Error creating EP","details":"network not found"}'
	exit 1
fi
echo "$conf" | jq 'del(.contiv) + {type: "ptp", ipam: {type: "host-local", ranges: [[{subnet: "10.1.0.0/24"}], [{subnet: "fd00:1::/64"}]]}}' |
	CNI_PATH=/usr/lib/cni /usr/lib/cni/ptp
`

func TestContainers(t *testing.T) {
	t.Parallel()
	c := bare(t, 2)
	if err := os.WriteFile(filepath.Join(c.Bin, "contivk8s"), []byte(plugin), 0o755); err != nil {
		t.Fatal(err)
	}
	l := labtest.UpFrom(t, c)
	ctx := t.Context()

	web, err := l.Attach(ctx, lab.Attachment{Host: "host2", Name: "web", Network: "net", Tenant: "blue", Group: "g"})
	if err != nil {
		t.Fatal(err)
	}
	if web.Host != "host2" || web.IPv4 != "10.1.0.2" || web.IPv6 != "fd00:1::2" || web.MAC == "" {
		t.Errorf("container = %+v, want the first addresses of both subnets and a MAC", web)
	}
	if diff := cmp.Diff([]string{"10.1.0.2/24", "fd00:1::2/64"}, web.IPs); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	read, err := l.Container("web")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(web, read); diff != "" {
		t.Errorf("container on record (-attached +read):\n%s", diff)
	}
	if got := on(t, l, "web", "ip -4 -o address show eth0 | awk '{print $4}'; hostname; ls /sys/class/net | tr '\\n' ' '"); got != "10.1.0.2/24\nhost2\neth0 lo" {
		t.Errorf("in the container: %q", got)
	}
	on(t, l, "web", "ping -c 1 -W 5 127.0.0.1 && ping -c 1 -W 5 10.1.0.1")
	if err := l.Check(ctx, "web"); err != nil {
		t.Errorf("Check: %v", err)
	}

	refused := []struct {
		name string
		a    lab.Attachment
		kind errs.Kind
		want string
	}{
		{"twice", lab.Attachment{Host: "host1", Name: "web", Network: "net"}, errs.Exists, "container web is attached already"},
		{"no such host", lab.Attachment{Host: "host3", Name: "x", Network: "net"}, errs.NotFound, `host "host3" is not in the lab: expected host1 to host2`},
		{"no network", lab.Attachment{Host: "host1", Name: "x"}, errs.Invalid, "a network is needed"},
		{"bad name", lab.Attachment{Host: "host1", Name: "../x", Network: "net"}, errs.Invalid, `container name "../x"`},
		{"name of a host", lab.Attachment{Host: "host1", Name: "host2", Network: "net"}, errs.Invalid, "is the name of a host"},
		{"refused by the plugin", lab.Attachment{Host: "host1", Name: "x", Network: "none"}, errs.Other, "Contiv:Error creating EP: network not found"},
	}
	for _, tt := range refused {
		t.Run(tt.name, func(t *testing.T) {
			_, err := l.Attach(ctx, tt.a)
			if err == nil || errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v (kind %s), want %q of kind %s", err, errs.KindOf(err), tt.want, tt.kind)
			}
			if tt.a.Name == "x" {
				if _, err := l.Container("x"); !errs.Is(err, errs.NotFound) {
					t.Errorf("container x is on record: %v", err)
				}
			}
		})
	}
	if got := on(t, l, "host1", "ls /run/netns"); got != "" {
		t.Errorf("namespaces left on host1: %q", got)
	}
	all, err := l.Containers()
	if err != nil || len(all) != 1 || all[0].Name != "web" {
		t.Errorf("Containers = %+v, %v; want web alone", all, err)
	}
	// A command that still runs in another container does not keep this one alive.
	other, err := l.Attach(ctx, lab.Attachment{Host: "host2", Name: "other", Network: "net"})
	if err != nil {
		t.Fatal(err)
	}
	sleeper, err := l.Start(ctx, other.Name, lab.Stdio{}, "sleep", "1000")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Detach(ctx, "web"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", sleeper.Process.Pid)); err != nil || strings.Contains(string(b), "/run/netns/web") || !strings.Contains(string(b), "/run/netns/other") {
		t.Errorf("mounts of a command in the other container: %v\n%s", err, b)
	}
	if err := sleeper.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = sleeper.Wait() // killed, as it should be
	if err := l.Detach(ctx, other.Name); err != nil {
		t.Fatal(err)
	}
	if got := on(t, l, "host2", "ls /run/netns"); got != "" {
		t.Errorf("namespaces left on host2: %q", got)
	}
	if err := l.Detach(ctx, "web"); !errs.Is(err, errs.NotFound) {
		t.Errorf("second Detach = %v, want kind not found", err)
	}
}
