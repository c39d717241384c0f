package systemtests

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/test/lab"
)

// flowsOf reads the flow log of a host.
func (c cluster) flowsOf(host string, f flowapi.Filter) ([]flowapi.Record, error) {
	h, err := c.Host(host)
	if err != nil {
		return nil, err
	}
	resp, err := h.HTTP().Get("http://127.0.0.1:9090" + flowapi.PathAgent + "?" + f.Values().Encode())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out []flowapi.Record
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e flowapi.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		if e.Record != nil {
			out = append(out, *e.Record)
		}
	}
	return out, lines.Err()
}

// logged waits for a record of a host that satisfies want, and returns it.
func (c cluster) logged(host, what string, f flowapi.Filter, want func(r flowapi.Record) bool) (found flowapi.Record) {
	c.t.Helper()
	c.eventually("a record of "+what, func() error {
		all, err := c.flowsOf(host, f)
		if err != nil {
			return err
		}
		for _, r := range all {
			if want(r) {
				found = r
				return nil
			}
		}
		text, _ := json.Marshal(all)
		return errors.New("not among " + string(text))
	})
	return found
}

// decided is what a record says of its decisions, in short.
func decided(r flowapi.Record) string {
	var out []string
	for _, d := range r.Decisions {
		out = append(out, strings.TrimRight(fmt.Sprintf("%s %s %s %s/%s", d.Verdict, d.At, d.By, d.Policy, d.Rule), " /"))
	}
	return strings.Join(out, ", ")
}

// TestFlowLog: the log of a host names the ends of every connection and the rule that
// decided about it, in both families.
func TestFlowLog(t *testing.T) {
	c := up(t, lab.Config{Hosts: 1})
	c.netctl("net", "create", "net", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	c.netctl("policy", "create", "guard")
	c.netctl("group", "create", "net", "web", "--policy", "guard")
	c.netctl("group", "create", "net", "app")
	for id, rule := range map[string][]string{
		"1": {"--action=allow", "--port=80"}, "2": {"--action=deny", "--port=81"}, "3": {"--action=reject", "--port=82"},
	} {
		c.netctl(append([]string{"policy", "rule-add", "guard", id, "--direction=in", "--protocol=tcp", "--priority=10", "--from-group=app"}, rule...)...)
	}
	web, app := c.attachGroup("host1", "web", "net", "web"), c.attachGroup("host1", "app", "net", "app")
	c.listen("web", 80, 81, 82, 83)
	for _, to := range []string{web.IPv4, web.IPv6} {
		for port, want := range map[int]string{
			80: "allowed both rule guard/1", 81: "denied both rule guard/2", 82: "rejected both rule guard/3", 83: "allowed both default",
		} {
			c.eventually(fmt.Sprintf("port %d of %s as the rule says", port, to), func() error {
				_, err := c.Output(t.Context(), "app", "nc", "-z", "-w", "1", to, fmt.Sprint(port))
				if (err == nil) != strings.HasPrefix(want, "allowed") {
					return fmt.Errorf("connected: %v", err)
				}
				return nil
			})
			r := c.logged("host1", fmt.Sprintf("port %d of %s", port, to), flowapi.Filter{To: to, Port: uint16(port)}, func(r flowapi.Record) bool { return decided(r) == want })
			if !strings.HasSuffix(r.Src.Name, "app") && r.Src.Endpoint != "net.default-"+app.ContainerID || r.Src.Group != "app" || r.Dst.Group != "web" || r.Dst.Host != "host1" ||
				r.Tenant != "default" || r.Proto != "tcp" || r.Src.Network != "net" || r.Count == 0 {
				t.Errorf("port %d: %+v", port, r)
			}
		}
	}
	// A container that sends under another address is named itself.
	c.run("app", "ip addr add 10.1.1.77/24 dev eth0; ping -c 1 -W 1 -I 10.1.1.77 "+web.IPv4+" || true")
	r := c.logged("host1", "a forged address", flowapi.Filter{Verdict: "denied", From: "10.1.1.77"}, func(r flowapi.Record) bool { return decided(r) == "denied source anti-spoofing" })
	if r.Src.Group != "app" {
		t.Errorf("%+v", r)
	}
	// So is the service that was asked for, with the provider that it led to.
	c.event("start", web, map[string]string{"app": "web"})
	c.netctl("service", "create", "shop", "--network", "net", "--selector", "app=web", "--port", "8080:80:TCP")
	shop := c.serviceWith("shop", 1)
	c.eventually("the service is reached", func() error {
		_, err := c.Output(t.Context(), "app", "nc", "-z", "-w", "1", shop.v4, "8080")
		return err
	})
	r = c.logged("host1", "a service", flowapi.Filter{To: "shop"}, func(r flowapi.Record) bool { return decided(r) == "allowed both rule guard/1" })
	if r.Service.Address.String() != shop.v4 || r.Service.Port != 8080 || r.Dst.Address.String() != web.IPv4 || r.Dst.Port != 80 {
		t.Errorf("%+v", r)
	}
}
