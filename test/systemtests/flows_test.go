package systemtests

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/utils/tlsport"
)

// netctlFlows lists the connections of all hosts, each as it was told last, and the hosts that
// did not answer. run runs netctl.
func (c cluster) netctlFlows(run func(args ...string) (string, error), args ...string) (records map[string]flowapi.Record, missing []string, err error) {
	text, err := run(append([]string{"flows", "--json"}, args...)...)
	if err != nil {
		return nil, nil, err
	}
	records = map[string]flowapi.Record{}
	for line := range strings.Lines(text) {
		var e flowapi.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", line, err)
		}
		if e.Record != nil {
			records[e.Record.ID] = *e.Record
		}
		if e.Missing != nil {
			missing = append(missing, e.Missing.Host)
		}
	}
	return records, missing, nil
}

// TestFlows: a connection that two hosts have seen is one record, with what decided at each
// end; who may see one tenant sees its connections only; a host that is down is named.
func TestFlows(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, TLS: tlsport.Require})
	for _, tenant := range []string{"blue", "red"} {
		c.netctl("tenant", "create", tenant)
		c.netctl("net", "create", "net", "-t", tenant, "--subnet=10.1.1.0/24", "--gateway=10.1.1.254", "--subnetv6=2001:db8:1::/100")
		c.netctl("policy", "create", "guard", "-t", tenant)
		c.netctl("group", "create", "net", "web", "-t", tenant, "--policy", "guard")
		c.netctl("policy", "rule-add", "guard", "1", "-t", tenant, "--direction=in", "--protocol=tcp", "--port=81", "--action=deny", "--priority=9", "--wait")
	}
	group := func(tenant, host, name, group string) lab.Container {
		container, err := c.Attach(t.Context(), lab.Attachment{Host: host, Name: name, Tenant: tenant, Network: "net", Group: group})
		if err != nil {
			t.Fatal(err)
		}
		return container
	}
	for _, tenant := range []string{"blue", "red"} {
		web := group(tenant, "host2", tenant+"web", "web")
		group(tenant, "host1", tenant+"app", "")
		c.listen(tenant+"web", 80, 81)
		c.eventually("a connection of tenant "+tenant, func() error {
			_, err := c.Output(t.Context(), tenant+"app", "nc", "-z", "-w", "1", web.IPv4, "80")
			return err
		})
		_, _ = c.Output(t.Context(), tenant+"app", "nc", "-z", "-w", "1", web.IPv4, "81") // denied
	}
	all := func(args ...string) (string, error) { return c.NetctlOutput(t.Context(), args...) }
	want := map[string]string{ // by tenant and port
		"blue 80": "host1 host2: allowed source default, allowed destination default", "blue 81": "host1: denied source rule guard/1",
		"red 80": "host1 host2: allowed source default, allowed destination default", "red 81": "host1: denied source rule guard/1",
	}
	c.eventually("records of all connections", func() error {
		records, missing, err := c.netctlFlows(all, "--proto", "tcp")
		if err != nil || len(missing) > 0 {
			return fmt.Errorf("%v, without %v", err, missing)
		}
		got := map[string]string{}
		for _, r := range records {
			got[fmt.Sprintf("%s %d", r.Tenant, r.Dst.Port)] = strings.Join(r.Hosts, " ") + ": " + decided(r)
		}
		for key, text := range want {
			if got[key] != text {
				return fmt.Errorf("%s: %q, expected %q", key, got[key], text)
			}
		}
		return nil
	})
	c.tenantFlows("blue")
	h, err := c.Host("host2")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.StopDaemon(t.Context(), "netplugin", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.eventually("host2 is missing", func() error {
		records, missing, err := c.netctlFlows(all)
		if err != nil || len(missing) != 1 || missing[0] != "host2" || len(records) == 0 {
			return fmt.Errorf("%d records without %v: %v", len(records), missing, err)
		}
		return nil
	})
}

// tenantFlows: a viewer of one tenant sees its connections, and is refused others.
func (c cluster) tenantFlows(tenant string) {
	c.t.Helper()
	c.logIn("host2")
	url := "https://" + lab.ControlIP(1).String() + ":9999"
	token := strings.TrimSpace(c.netctlOn("host1", "token", "create", "reader", "--role", "viewer", "--tenant", tenant))
	as := func(args ...string) (string, error) {
		return c.Output(c.t.Context(), "host2", "curl", "-sS", "--cacert", "/etc/contiv/ca.pem", "-H", "X-Auth-Token: "+token, url+flowapi.PathMaster+"?"+strings.Join(args[2:], "&")) // after flows --json
	}
	records, _, err := c.netctlFlows(as)
	if err != nil || len(records) == 0 {
		c.t.Errorf("a viewer of tenant %s sees %d records: %v", tenant, len(records), err)
	}
	for _, r := range records {
		if r.Tenant != tenant {
			c.t.Errorf("a viewer of tenant %s sees %+v", tenant, r)
		}
	}
	// A stream ends with the token that it was opened with.
	ended := make(chan string, 1)
	go func() { text, err := as("", "", "follow=true"); ended <- fmt.Sprint(text, err) }()
	select {
	case text := <-ended:
		c.t.Errorf("a stream that follows has ended: %s", text)
	case <-time.After(time.Second):
	}
	defer func() {
		var tokens []struct{ ID string }
		if text := c.netctlOn("host1", "token", "ls", "--json"); json.Unmarshal([]byte(text), &tokens) != nil || len(tokens) != 1 {
			c.t.Fatal(text)
		}
		c.netctlOn("host1", "token", "rm", tokens[0].ID)
		select {
		case text := <-ended:
			if !strings.Contains(text, `"live":true`) {
				c.t.Errorf("the stream said %s", text)
			}
		case <-time.After(time.Minute):
			c.t.Error("a stream goes on without its token")
		}
	}()
	if text, err := as("", "", "tenant=red"); !strings.Contains(text, "is needed") {
		c.t.Errorf("a viewer of tenant %s asks for another: %s %v", tenant, text, err)
	}
}

// TestPreview: what a change would have done to the connections of two hosts is told, and is
// what it then does; nothing changes before.
func TestPreview(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "net", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254", "--subnetv6=2001:db8:1::/100")
	c.netctl("policy", "create", "guard")
	c.netctl("group", "create", "net", "web", "--policy", "guard")
	c.netctl("group", "create", "net", "app")
	c.netctl("policy", "rule-add", "guard", "1", "--direction=in", "--protocol=tcp", "--port=82", "--action=deny", "--wait")
	web := c.attachGroup("host2", "web", "net", "web")
	c.attachGroup("host1", "app", "net", "app")
	c.listen("web", 80, 81, 82)
	for port, want := range map[int]bool{80: true, 81: true, 82: false} {
		c.connects("app", web, port, want)
	}
	deny := []string{"policy", "rule-add", "guard", "2", "--direction=in", "--protocol=tcp", "--port=81", "--from-group=app", "--action=deny", "--priority=5"}
	c.eventually("what a rule would deny", func() error {
		text := c.netctl(append(deny, "--preview")...)
		if !strings.HasPrefix(text, "this would have denied 2 of ") || strings.Count(text, ":81)  by guard/2") != 2 {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	c.connects("app", web, 81, true)
	c.eventually("what would be allowed without a rule", func() error {
		if text := c.netctl("policy", "rule-rm", "guard", "1", "--preview"); !strings.Contains(text, "would now allow ") {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	c.netctl(append(deny, "--wait")...)
	c.connects("app", web, 81, false)
	if text := c.netctl("policy", "hits"); !strings.Contains(text, "guard/2") || !strings.Contains(text, "Last hour") {
		t.Errorf("hits:\n%s", text)
	}
}

// TestExplainAgrees: netctl explain says of random pairs under random policies what netctl
// trace finds in the switches.
func TestExplainAgrees(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	rng := rand.New(rand.NewPCG(12, 36))
	pick := func(all ...string) string { return all[rng.IntN(len(all))] }
	c.netctl("net", "create", "net", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254", "--subnetv6=2001:db8:1::/100")
	groups := []string{"g0", "g1", "g2"}
	for _, g := range groups {
		c.netctl("policy", "create", "p"+g)
		c.netctl("group", "create", "net", g, "--policy", "p"+g)
	}
	names := []string{}
	for i, g := range append(groups, groups...) {
		name := fmt.Sprint("c", i)
		c.attachGroup([]string{"host1", "host2"}[i/3], name, "net", g)
		names = append(names, name)
	}
	verdicts := map[flowapi.Verdict]int{}
	for round := range 4 {
		for i := range 5 {
			args := []string{"policy", "rule-add", "p" + pick(groups...), fmt.Sprint(round, "-", i), "--priority", fmt.Sprint(1 + rng.IntN(4)), "--action", pick("allow", "deny", "reject")}
			if direction := pick("in", "out"); rng.IntN(3) > 0 {
				args = append(args, "--direction", direction, map[string]string{"in": "--from-group", "out": "--to-group"}[direction], pick(groups...))
			}
			if proto := pick("tcp", "udp", "icmp", ""); proto != "" {
				args = append(args, "--protocol", proto)
				if proto != "icmp" && rng.IntN(2) == 0 {
					args = append(args, "--port", pick("80", "443"))
				}
			}
			c.netctl(append(args, "--wait")...)
		}
		for range 25 {
			from, to := pick(names...), pick(names...)
			for from == to {
				to = pick(names...)
			}
			args := [][]string{{"--proto", "tcp", "--port", "80"}, {"--proto", "udp", "--port", "443"}, {"--proto", "icmp"}, {"--proto", "tcp", "--port", "22"}}[rng.IntN(4)]
			var e flowapi.Explanation
			if text := c.netctl(append([]string{"explain", from, to, "--json"}, args...)...); json.Unmarshal([]byte(text), &e) != nil {
				t.Fatal(text)
			}
			// The switches say of the first packet whether it is delivered.
			tr := c.trace(append([]string{"--from", from, "--to", to}, args...)...)
			delivered := len(tr.Reply) > 0 // what is refused is answered, too
			if verdicts[e.Verdict]++; delivered != (e.Verdict == flowapi.Allowed) {
				t.Errorf("%s to %s %v: explain says %s\ntrace says %s", from, to, args, e.Text, tr.Verdict)
			}
			for _, a := range e.Applied {
				if !a.Done {
					t.Errorf("host %s: %s", a.Host, a.Error)
				}
			}
		}
	}
	if verdicts[flowapi.Allowed] < 15 || verdicts[flowapi.Denied]+verdicts[flowapi.Rejected] < 15 {
		t.Errorf("verdicts %v: the test says little", verdicts)
	}
}
