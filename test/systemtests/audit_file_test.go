package systemtests

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/test/lab"
)

const auditDir = "/var/log/contiv/audit"

// audited reads the audit file of a host.
func (c cluster) audited(host string) (records []flowapi.Record, gaps []flowapi.Gap, err error) {
	text, err := c.Output(c.t.Context(), host, "cat", auditDir+"/connections.log")
	for line := range strings.Lines(text) {
		var ev flowapi.Event
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", line, err)
		}
		if ev.Record != nil {
			records = append(records, *ev.Record)
		}
		if ev.Gap != nil {
			gaps = append(gaps, *ev.Gap)
		}
	}
	return records, gaps, err
}

// auditNote is what a host's health says of its audit file.
func (c cluster) auditNote(host string) string {
	c.t.Helper()
	var health struct{ Notes map[string]string }
	text, err := c.Output(c.t.Context(), host, "curl", "-s", "http://127.0.0.1:9090/healthz")
	if err == nil {
		err = json.Unmarshal([]byte(text), &health)
	}
	if err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	return health.Notes["audit"]
}

// TestAuditFile: both hosts write what the rules of a policy with audit decide, and nothing
// else, to files of bounded size. A full disk is told, and holds up no connection.
func TestAuditFile(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, AgentFlags: []string{"--audit-dir", auditDir, "--audit-size=1", "--audit-keep=1"}})
	c.netctl("net", "create", "net", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254", "--subnetv6=2001:db8:1::/100")
	web := map[string]lab.Container{}
	for _, policy := range []string{"seen", "unseen"} {
		c.netctl("policy", "create", policy, fmt.Sprint("--audit=", policy == "seen"))
		c.netctl("group", "create", "net", policy, "--policy", policy)
		c.netctl("policy", "rule-add", policy, "1", "--direction=in", "--protocol=tcp", "--port=80", "--action=allow")
		c.netctl("policy", "rule-add", policy, "2", "--direction=in", "--protocol=tcp", "--port=81", "--action=deny")
		c.netctl("policy", "rule-add", policy, "3", "--direction=in", "--protocol=udp", "--port=9", "--action=allow", "--wait")
		web[policy] = c.attachGroup("host2", policy, "net", policy)
		c.listen(policy, 80, 81)
	}
	c.attach("host1", "app", "net")
	meet := func() {
		t.Helper()
		for _, policy := range []string{"unseen", "seen"} {
			c.connects("app", web[policy], 80, true)
			c.connects("app", web[policy], 81, false)
		}
	}
	meet()
	want := map[string]string{"host1": "allowed source rule seen/1; denied source rule seen/2", "host2": "allowed destination rule seen/1"}
	for host, decisions := range want {
		c.eventually("the audit file of "+host, func() error {
			records, _, err := c.audited(host)
			if err != nil {
				return err
			}
			has := map[string]bool{}
			for _, r := range records {
				if has[decided(r)] = true; !r.Audited || !strings.Contains(decisions, decided(r)) {
					t.Errorf("%s has written %s: %+v", host, decided(r), r)
				}
			}
			for text := range strings.SplitSeq(decisions, "; ") {
				if !has[text] {
					return fmt.Errorf("no %q among %v", text, has)
				}
			}
			return nil
		})
	}
	c.auditRotates(web["seen"].IPv4)
	c.auditDiskFull(meet)
}

// auditRotates: many connections make no more than two files of 1 MiB on a host.
func (c cluster) auditRotates(to string) {
	c.t.Helper()
	c.run("app", "bash -c 'for i in {1..6000}; do echo > /dev/udp/"+to+"/9; done'")
	c.eventually("the file is rotated twice", func() error {
		text, err := c.Output(c.t.Context(), "host2", "curl", "-s", "http://127.0.0.1:9090/metrics")
		if err != nil {
			return err
		}
		_, after, _ := strings.Cut(text, "\ncontiv_flow_audited_total ")
		var n float64
		if _, err := fmt.Sscan(after, &n); err != nil || n < 6000 {
			return fmt.Errorf("%v lines (%v)", n, err)
		}
		return nil
	})
	text := c.run("host2", "cd "+auditDir+"; stat -c '%n %a %s' *")
	var name, other string
	var mode, size, otherSize int
	if n, err := fmt.Sscanf(text, "%s %d %d\n%s %d %d", &name, &mode, &size, &other, &mode, &otherSize); err != nil || n != 6 ||
		name != "connections.log" || other != "connections.log.1" || mode != 600 || size > 1<<20 || otherSize > 1<<20 || otherSize < 1<<19 {
		c.t.Errorf("files: %s (%v)", text, err)
	}
}

// auditDiskFull: while the disk of host1 is full, its health says that nothing is written, and
// afterwards the file says what is missing.
func (c cluster) auditDiskFull(meet func()) {
	c.t.Helper()
	c.run("host1", "rm -f "+auditDir+"/*; mount -t tmpfs -o size=16k none "+auditDir+"; head -c 16384 /dev/zero > "+auditDir+"/full")
	c.restart("host1", "netplugin", 15)
	if note := c.auditNote("host1"); note != "" {
		c.t.Errorf("before anything was to be written: %s", note)
	}
	c.eventually("a full disk is told", func() error {
		meet()
		if note := c.auditNote("host1"); !strings.Contains(note, "no space left on device") {
			return fmt.Errorf("note %q", note)
		}
		return nil
	})
	c.run("host1", "rm "+auditDir+"/full")
	c.eventually("what is missing stands in the file", func() error {
		meet()
		records, gaps, err := c.audited("host1")
		if err != nil || len(records) == 0 || len(gaps) == 0 || gaps[0].Count == 0 || !strings.Contains(gaps[0].Why, "could not be written") || c.auditNote("host1") != "" {
			return fmt.Errorf("%d records, gaps %+v, note %q: %w", len(records), gaps, c.auditNote("host1"), err)
		}
		return nil
	})
}
