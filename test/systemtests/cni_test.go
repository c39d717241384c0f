package systemtests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/test/lab"
)

// plugins runs CNI plugins in a host, for the library that runtimes have.
type plugins struct {
	*lab.Host
	version.PluginDecoder
}

const pluginDir = "/opt/cni/bin"

func (p *plugins) FindInPath(plugin string, _ []string) (string, error) {
	return pluginDir + "/" + plugin, nil
}

func (p *plugins) ExecPlugin(ctx context.Context, path string, stdin []byte, env []string) ([]byte, error) {
	var out, stderr bytes.Buffer
	err := p.Run(ctx, lab.Stdio{In: bytes.NewReader(stdin), Out: &out, Err: &stderr, Env: env}, path)
	if err == nil {
		return out.Bytes(), nil
	}
	said := &types.Error{}
	if json.Unmarshal(out.Bytes(), said) == nil && said.Code != 0 {
		return nil, said
	}
	return nil, fmt.Errorf("%s: %w: %s%s", path, err, out.String(), stderr.String())
}

// cniRuntime is a runtime of containers that are namespaces.
type cniRuntime struct {
	cluster
	lib  *libcni.CNIConfig
	host *lab.Host
}

// conflist is a network configuration of some plugins.
func (r cniRuntime) conflist(name, version string, plugins ...string) *libcni.NetworkConfigList {
	r.t.Helper()
	list, err := libcni.ConfListFromBytes(fmt.Appendf(nil, `{"cniVersion":%q,"name":%q,"plugins":[%s]}`, version, name, strings.Join(plugins, ",")))
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

// container makes a namespace.
func (r cniRuntime) container(name string) *libcni.RuntimeConf {
	r.t.Helper()
	r.cluster.run(r.host.Name, "ip netns add "+name)
	return &libcni.RuntimeConf{ContainerID: name, NetNS: "/run/netns/" + name, IfName: "eth0"}
}

// add attaches a container and returns its result.
func (r cniRuntime) add(list *libcni.NetworkConfigList, c *libcni.RuntimeConf) *types100.Result {
	r.t.Helper()
	answer, err := r.lib.AddNetworkList(r.t.Context(), list, c)
	if err != nil {
		r.t.Fatal(err)
	}
	result, err := types100.NewResultFromResult(answer)
	if err != nil {
		r.t.Fatal(err)
	}
	return result
}

// has expects how many ports there are.
func (r cniRuntime) has(n int) {
	r.t.Helper()
	if ports := strings.Fields(r.cluster.run(r.host.Name, "cd /sys/class/net; ls -d vvport* 2>/dev/null || true")); len(ports) != n {
		r.t.Errorf("ports %v, expected %d", ports, n)
	}
}

// TestCNILibrary: runtimes call plugins by a library which, from version 1.1 of the
// specification on, asks for their status and has them collect what is left.
func TestCNILibrary(t *testing.T) {
	c := up(t, lab.Config{Hosts: 1})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
	host := c.Hosts()[0]
	r := cniRuntime{c, libcni.NewCNIConfigWithCacheDir([]string{pluginDir}, t.TempDir(), &plugins{Host: host}), host}
	const contiv = `{"type":"contivk8s","contiv":{"network":"net"}}`

	t.Run("between other plugins", func(t *testing.T) {
		r := r
		r.t = t
		chain := r.conflist("chain", "1.0.0", `{"type":"loopback"}`, contiv, `{"type":"tuning","sysctl":{"net.ipv4.conf.eth0.log_martians":"1"}}`)
		one := r.container("chained")
		result := r.add(chain, one)
		names := map[string]int{}
		for i, ifc := range result.Interfaces {
			names[ifc.Name] = i
		}
		own, ok := names["eth0"]
		if _, before := names["lo"]; !before || !ok {
			t.Fatalf("interfaces %v, expected those of the plugin before, and eth0", names)
		}
		last := result.IPs[len(result.IPs)-1]
		if result.IPs[0].Address.IP.String() != "127.0.0.1" || !strings.HasPrefix(last.Address.String(), "20.1.1.") || last.Interface == nil || *last.Interface != own {
			t.Errorf("addresses %v, expected that of the plugin before, and ours of interface %d", result.IPs, own)
		}
		if got := r.cluster.run(host.Name, "nsenter --net=/run/netns/chained cat /proc/sys/net/ipv4/conf/eth0/log_martians"); got != "1" {
			t.Errorf("the plugin behind has set %q", got)
		}
		if err := r.lib.CheckNetworkList(t.Context(), chain, one); err != nil {
			t.Errorf("CHECK: %v", err)
		}
		r.cluster.run(host.Name, "nsenter --net=/run/netns/chained ip addr flush dev eth0")
		if err := r.lib.CheckNetworkList(t.Context(), chain, one); err == nil || !strings.Contains(err.Error(), "20.1.1.") {
			t.Errorf("CHECK of a container without address: %v", err)
		}
		for range 2 {
			if err := r.lib.DelNetworkList(t.Context(), chain, one); err != nil {
				t.Errorf("DEL: %v", err)
			}
		}
		r.has(0)
	})
	t.Run("addresses that the runtime wants", func(t *testing.T) {
		r := r
		r.t = t
		list := r.conflist("chosen", "1.0.0", `{"type":"contivk8s","contiv":{"network":"net"},"capabilities":{"ips":true,"mac":true}}`)
		one := r.container("chosen")
		one.CapabilityArgs = map[string]any{"ips": []string{"20.1.1.77/24"}, "mac": "02:00:00:00:00:77"}
		result := r.add(list, one)
		if got := result.IPs[0].Address.String(); got != "20.1.1.77/24" || result.Interfaces[1].Mac != "02:00:00:00:00:77" {
			t.Errorf("address %s, interfaces %+v", got, result.Interfaces)
		}
		if out := r.cluster.run(host.Name, "nsenter --net=/run/netns/chosen ip addr show eth0"); !strings.Contains(out, "20.1.1.77/24") || !strings.Contains(out, "02:00:00:00:00:77") {
			t.Errorf("the interface is %s", out)
		}
		two := r.container("chosen-too")
		two.CapabilityArgs = one.CapabilityArgs
		if _, err := r.lib.AddNetworkList(t.Context(), list, two); err == nil || !strings.Contains(err.Error(), "20.1.1.77") {
			t.Errorf("ADD of another container with that address: %v", err)
		}
		if err := r.lib.DelNetworkList(t.Context(), list, one); err != nil {
			t.Errorf("DEL: %v", err)
		}
		r.has(0)
	})
	t.Run("collect what is left", func(t *testing.T) {
		r := r
		r.t = t
		list, other := r.conflist("one", "1.1.0", contiv), r.conflist("other", "1.1.0", contiv)
		valid := &libcni.GCArgs{}
		for _, name := range []string{"kept", "left", "unknown"} {
			rt := r.container(name)
			result := r.add(list, rt)
			if result.CNIVersion != "1.1.0" || result.Interfaces[1].Mtu == 0 {
				t.Errorf("result %+v", result)
			}
			switch name {
			case "kept":
				valid.ValidAttachments = append(valid.ValidAttachments, types.GCAttachment{ContainerID: name, IfName: "eth0"})
			case "unknown": // to the library
				lib := libcni.NewCNIConfigWithCacheDir([]string{pluginDir}, t.TempDir(), &plugins{Host: host})
				again := *rt
				again.ContainerID, again.NetNS = "unknown-2", "/run/netns/kept"
				again.IfName = "net1"
				if _, err := lib.AddNetworkList(t.Context(), list, &again); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.add(other, r.container("of-other"))
		r.has(5)
		if err := r.lib.GCNetworkList(t.Context(), list, valid); err != nil {
			t.Errorf("GC: %v", err)
		}
		r.has(2)
		if err := r.lib.GCNetworkList(t.Context(), other, nil); err != nil {
			t.Errorf("GC: %v", err)
		}
		r.has(1)
	})
	t.Run("status", func(t *testing.T) {
		r := r
		r.t = t
		list := r.conflist("one", "1.1.0", contiv)
		status := func() error { return r.lib.GetStatusNetworkList(t.Context(), list) }
		if err := status(); err != nil {
			t.Errorf("STATUS: %v", err)
		}
		for daemon, code := range map[string]uint{"ovs-vswitchd": cni.CodeLimited, "netplugin": cni.CodeNotAvailable} {
			if err := host.StopDaemon(t.Context(), daemon, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			r.eventually("STATUS tells that "+daemon+" is away", func() error {
				err := status()
				if said := (*types.Error)(nil); errors.As(err, &said) && said.Code == code {
					return nil
				}
				return fmt.Errorf("%v, expected code %d", err, code)
			})
			if err := host.StartDaemon(t.Context(), daemon); err != nil {
				t.Fatal(err)
			}
			r.eventually("STATUS is well", status)
		}
	})
}
