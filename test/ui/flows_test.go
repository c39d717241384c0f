package ui

import (
	"fmt"
	"strings"

	"github.com/contiv/netplugin/test/lab"
)

// serve has a container take connections on ports.
func (c cluster) serve(name string, ports ...string) {
	c.Helper()
	for _, port := range ports {
		cmd, err := c.Start(c.Context(), name, lab.Stdio{}, "nc", "-lk", "-p", port)
		if err != nil {
			c.Fatal(err)
		}
		c.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

// knock tries to connect, and says whether it did.
func (c cluster) knock(from, to, port string) bool {
	_, err := c.Lab.Output(c.Context(), from, "nc", "-z", "-w", "1", to, port)
	return err == nil
}

// testFlows: connections of real containers come to the page, with what decided; one leads to its
// trace, and to a rule that allows it, which is tried before it counts.
func testFlows(c cluster, p tab) {
	const db = "10.2.0.1"
	c.serve("db1", "5432", "6379")
	p.open("/flows").sees("h1", "Flows")
	if !c.knock("web1", db, "5432") {
		c.Fatal("web1 does not reach the database")
	}
	if c.knock("web1", db, "6379") {
		c.Fatal("web1 reaches a port that is denied")
	}
	p.sees(".table tr", "tcp/5432")
	p.sees(".table tr.denied", "tcp/6379")
	row := func(port, verdict, rule string) {
		p.until(fmt.Sprintf("a connection to port %s is %s by %s", port, verdict, rule), fmt.Sprintf(
			`[...document.querySelectorAll(".table tbody tr")].some((r) => [%q, %q, %q, "web1", "db1", "shop"].every((t) => r.innerText.includes(t)))`, "tcp/"+port, verdict, rule))
	}
	row("5432", "allowed", "db-access/1")
	row("6379", "denied", "db-access/2")

	p.open("/flows?verdict=denied&port=6379").until("only what the filter selects is shown", `document.querySelectorAll(".table tbody tr").length > 0 && [...document.querySelectorAll(".table tbody tr")].every((r) => r.innerText.includes("6379"))`)
	p.click(".table tr.denied a", ":")
	p.sees(".detail", "web1", "db1", "db-access/2", "at the sender, host1")
	p.click(".detail button", "Trace it now")
	p.sees(".pipeline", "does not arrive")
	p.sees(".pipeline .hop", "host1")
	p.keep("connection")
	p.click(".detail a", "Make a rule that allows this")
	p.until("the form is filled in", `["shop", "db-access", "6379", "web"].every((v) => [...document.querySelectorAll(".form input")].some((e) => e.value === v))`)
	p.click("button", "Review")
	p.click(".review button", "Try it")
	p.sees(".review .flows", "web1", "db1", "6379")
	p.click("button", "Create")
	p.sees(".detail h2", "shop:db-access:")
	p.sees(".applied", "Applied on 2 of 2 hosts")
	if !c.knock("web1", db, "6379") {
		c.Fatalf("the new rule allows nothing:\n%s", c.netctl("policy", "rule-ls", "-t", "shop", "db-access"))
	}
	p.open("/flows?verdict=allowed&port=6379").sees(".table tr", "tcp/6379")
	if csv := eval[string](p, `new Promise((done) => {
		const click = HTMLAnchorElement.prototype.click;
		HTMLAnchorElement.prototype.click = function () { HTMLAnchorElement.prototype.click = click; window.saved = [this.download, this.href]; };
		[...document.querySelectorAll("button")].find((e) => e.innerText.includes("CSV")).click();
		done(window.saved[0] + " " + window.saved[1].slice(0, 5));
	})`); !strings.HasPrefix(csv, "connections.csv blob:") {
		c.Errorf("saved as %s", csv)
	}

	p.open("/policies?tenant=shop&from=web&to=db").until("rules have hits", `[...document.querySelectorAll(".list li")].some((e) => e.innerText.includes("db-access/1") && /[1-9][0-9]* hit/.test(e.innerText))`)

	p.open("/topology?tenant=shop").until("the connection is drawn", `document.querySelector('[data-wire="group:web group:db"].allowed')`)
	p.until("what was denied, too", `document.querySelector('[data-wire="group:web group:db"].denied')`)
	p.keep("topology")
}
