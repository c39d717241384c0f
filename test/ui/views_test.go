package ui

import (
	_ "embed"
	"encoding/json"
	"strings"
	"testing"
)

// view is a view of the page without a login.
type view struct{ hash, title string }

var views = []view{
	{"/", "Overview"},
	{"/topology?tenant=shop", "Topology"},
	{"/flows", "Flows"},
	{"/objects/rule/shop:db-access:1", "Rules"},
	{"/objects/endpoints", "Endpoints"},
	{"/objects/rule?new=1", "Rules"},
	{"/policies?tenant=shop&from=web&to=db", "Policies"},
	{"/services/shop:shop-web", "Services"},
	{"/hosts/host1", "Hosts"},
	{"/changes", "Changes"},
}

// axe is the program of axe-core; see testdata/README.md.
//
//go:embed testdata/axe.min.js
var axe string

// finding is what axe-core says of a page.
type finding struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Nodes  []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// accessible has axe-core look at the page, by the criteria of WCAG 2.2, levels A and AA.
func (p tab) accessible(t *testing.T, what string) {
	t.Helper()
	if !eval[bool](p, `typeof axe === "object"`) {
		eval[any](p, axe+"; null")
	}
	// Until transitions are over, colors are between those of the two themes.
	out := eval[string](p, `Promise.allSettled(document.getAnimations().filter((a) => a.effect.getTiming().iterations !== Infinity).map((a) => a.finished)).then(() =>
		axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })).then((r) => JSON.stringify(r.violations))`)
	var found []finding
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Errorf("%s: %s (%s): %s", what, f.ID, f.Impact, f.Help)
		for _, n := range f.Nodes[:min(3, len(f.Nodes))] {
			t.Logf("%.300s\n%s", n.HTML, n.Summary)
		}
	}
}

// testAccessible: axe-core finds nothing in any view, light or dark.
func testAccessible(t *testing.T, p tab) {
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		for _, v := range views {
			p.open(v.hash).sees("h1", v.title)
			p.accessible(t, scheme+" "+v.hash)
			p.keep(scheme + strings.NewReplacer("/", "-", "?", "-", ":", "-", "&", "-").Replace(v.hash))
		}
	}
}

func testPolicies(c cluster, p tab) {
	p.open("/policies?tenant=shop").sees(".matrix th", "web", "db")
	p.click(`.matrix button[title^="web → db"]`, "")
	p.sees(".panel h2", "web → db")
	p.sees(".panel .list", "tcp/5432", "db-access/1", "db-access/2", "priority 10")
	p.click(`.matrix button[title^="db → web"]`, "")
	p.sees(".panel", "No rule is between these groups")
	c.netctl("policy", "rule-add", "-t", "shop", "-d", "in", "-l", "udp", "-P", "53", "-j", "allow", "-p", "5", "db-access", "9")
	p.click(`.matrix button[title^="web → db"]`, "")
	p.sees(".panel .list", "udp/53")
	c.netctl("policy", "create", "-t", "shop", "--mode", "audit", "trial")
	c.netctl("policy", "rule-add", "-t", "shop", "-d", "in", "-j", "deny", "trial", "1")
	c.netctl("group", "create", "-t", "shop", "-p", "trial", "front", "lab")
	p.click(`.matrix button[title^="web → lab: rules in audit mode"]`, "?")
	p.sees(".panel .list", "audit: deny")
	c.netctl("policy", "create", "-t", "shop", "--mode", "enforce", "trial")
	p.sees(".matrix td.deny.chosen", "✕")
	c.netctl("group", "rm", "-t", "shop", "lab")
	c.netctl("policy", "rm", "-t", "shop", "trial")
}

func testTopology(_ cluster, p tab) {
	p.open("/topology?tenant=shop").sees(".network", "front", "10.2.0.0/16")
	p.sees(`[data-box="group:web"]`, "1 endpoint")
	p.sees(`[data-box="group:db"]`, "1 endpoint")
	p.click(`[data-box="group:db"]`, "db")
	p.until("the hosts of the group are shown", `[...document.querySelectorAll(".hosts li:not(.off)")].map((e) => e.innerText).join() === "host2 1 endpoint"`)
}

func testServices(_ cluster, p tab) {
	p.open("/services").sees(".table", "shop-web", "80:8080:TCP", "none")
	p.click(".table a", "shop-web")
	p.sees(".detail", "app=web", "No container has all labels")
}

func testHosts(_ cluster, p tab) {
	p.open("/hosts").sees(".table", "host1", "host2", "up", "192.168.60.10")
	p.click(".table a", "host2")
	p.sees(".detail", "192.168.60.11", "revision")
}

func testChanges(c cluster, p tab) {
	p.open("/changes").sees(".changes li", "db-access") // of before the page was opened
	c.netctl("netprofile", "create", "-t", "shop", "-b", "10Mbps", "-d", "10", "seen")
	p.sees(".changes li", "shop:seen", "added")
	c.netctl("netprofile", "create", "-t", "shop", "-b", "20Mbps", "-d", "10", "seen")
	p.sees(".changes .diff ins", "20Mbps")
	p.sees(".changes .diff del", "10Mbps")
	c.netctl("netprofile", "rm", "-t", "shop", "seen")
	p.sees(".changes li", "removed")
	p.click(`.changes li:last-child .end a`, ":")
	p.gone(".changes li", "removed")
}
