package ui

import (
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// cluster is a lab for one test.
type cluster struct {
	*lab.Lab
	testing.TB
}

// netctl runs a command that must succeed.
func (c cluster) netctl(args ...string) string {
	c.Helper()
	out, err := c.NetctlOutput(c.Context(), args...)
	if err != nil {
		c.Fatal(err)
	}
	return out
}

// shop makes a tenant with two networks, groups, policies, a service, and containers.
func (c cluster) shop() {
	c.Helper()
	c.netctl("tenant", "create", "shop")
	c.netctl("net", "create", "-t", "shop", "-s", "10.1.0.0/16", "-g", "10.1.0.254", "front")
	c.netctl("net", "create", "-t", "shop", "-s", "10.2.0.0/16", "-g", "10.2.0.254", "back")
	c.netctl("policy", "create", "-t", "shop", "db-access")
	c.netctl("group", "create", "-t", "shop", "front", "web")
	c.netctl("group", "create", "-t", "shop", "-p", "db-access", "back", "db")
	c.netctl("policy", "rule-add", "-t", "shop", "-d", "in", "-l", "tcp", "-P", "5432", "-j", "allow", "-g", "web", "-p", "10", "db-access", "1")
	c.netctl("policy", "rule-add", "-t", "shop", "-d", "in", "-j", "deny", "db-access", "2")
	c.netctl("service", "create", "shop-web", "-t", "shop", "-l", "app=web", "--network", "front", "-p", "80:8080:TCP")
	for _, a := range []lab.Attachment{
		{Host: "host1", Name: "web1", Tenant: "shop", Network: "front", Group: "web"},
		{Host: "host2", Name: "db1", Tenant: "shop", Network: "back", Group: "db"},
	} {
		if _, err := c.Attach(c.Context(), a); err != nil {
			c.Fatal(err)
		}
	}
}

// TestPage: each view shows what a running cluster has, and follows it.
func TestPage(t *testing.T) {
	c := cluster{labtest.Up(t, lab.Config{Hosts: 2}), t}
	c.shop()
	base := "http://" + gate(t, c.Lab, "host1")
	p := browse(t, base)
	view := func(name string, test func(c cluster, p tab)) {
		t.Run(name, func(t *testing.T) { test(cluster{c.Lab, t}, tab{t, p.ctx, base}) })
	}
	view("overview", func(c cluster, p tab) {
		p.open("/").sees("h1", "Overview")
		p.sees(`[data-card="hosts up"]`, "2 of 2")
		p.sees(`[data-card="applied"]`, "2 of 2")
		p.sees(`[data-card="endpoints"]`, "2")
		p.sees(".head", "Healthy")
		c.netctl("net", "create", "-t", "shop", "-s", "10.9.0.0/16", "live")
		p.sees(".panel", "shop:live")
	})
	view("objects", func(c cluster, p tab) {
		p.open("/objects/rule").sees(".table", "db-access / 1", "db-access / 2")
		p.click(".table a", "db-access / 1")
		p.sees(".detail", "5432", "db-access", "allow")
		p.click(".detail a", "db-access")
		p.sees(".detail h2", "Policy shop:db-access")
		p.sees(".detail", "Used by", "shop:db")
		p.open("/objects/endpoints").sees(".table", "web1", "10.2.0.1", "host2")
	})
	view("policies", testPolicies)
	view("topology", testTopology)
	view("services", testServices)
	view("hosts", testHosts)
	view("flows", testFlows)
	view("create, edit and delete", testObjects)
	view("changes", testChanges)
	view("markup", testMarkup)
	view("keyboard", testKeyboard)
	t.Run("phone", func(t *testing.T) { testPhone(t, tab{t, p.ctx, base}) })
	t.Run("accessible", func(t *testing.T) { testAccessible(t, tab{t, p.ctx, base}) })
}
