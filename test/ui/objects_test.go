package ui

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// fill puts values into a form's fields: into a select by its options, else by typing.
func (p tab) fill(values map[string]string) {
	p.Helper()
	for name, value := range values {
		selector := fmt.Sprintf("[data-field=%q] :is(input, select)", name)
		p.do(chromedp.WaitVisible(chromedp.CSS(selector)))
		switch eval[string](p, fmt.Sprintf("document.querySelector(%q).type", selector)) {
		case "select-one":
			eval[any](p, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event("change", { bubbles: true })); })()`, selector, value))
		case "checkbox":
			p.do(chromedp.Click(chromedp.CSS(selector)))
		default:
			p.types(selector, value)
		}
	}
}

// testObjects creates objects of several kinds, changes one, and deletes all, with the forms.
func testObjects(c cluster, p tab) {
	for _, k := range []struct {
		kind, key string
		fields    map[string]string
	}{
		{"tenant", "form", map[string]string{"tenantName": "form"}},
		{"network", "form:net", map[string]string{"tenantName": "form", "networkName": "net", "encap": "vxlan", "subnet": "10.7.0.0/16", "gateway": "10.7.0.254"}},
		{"policy", "form:pol", map[string]string{"tenantName": "form", "policyName": "pol", "audit": "true"}},
		{"netprofile", "form:slow", map[string]string{"tenantName": "form", "profileName": "slow", "bandwidth": "10Mbps", "DSCP": "10"}},
		{"endpointGroup", "form:grp", map[string]string{"tenantName": "form", "groupName": "grp", "networkName": "net", "policies": "pol"}},
		{"rule", "form:pol:1", map[string]string{"tenantName": "form", "policyName": "pol", "ruleId": "1", "direction": "in", "action": "deny", "protocol": "tcp", "port": "80"}},
		{"serviceLB", "form:svc", map[string]string{"tenantName": "form", "serviceName": "svc", "networkName": "net", "ports": "80:8080:TCP", "selectors": "app=web"}},
	} {
		p.open("/objects/" + k.kind + "?new=1")
		p.fill(k.fields)
		p.click("button", "Review")
		for _, value := range k.fields {
			p.sees(".diff ins", value)
		}
		p.click("button", "Create")
		p.sees(".detail h2", k.key)
		p.sees(".detail .applied", "Applied on 2 of 2 hosts")
		p.sees(".detail dd", k.fields["tenantName"])
	}
	for what, want := range map[string]string{"network": "10.7.0.0/16", "group": "grp", "policy": "pol", "netprofile": "10Mbps", "service": "svc"} {
		if out := c.netctl(what, "ls", "-t", "form"); !strings.Contains(out, want) {
			c.Errorf("netctl %s ls, want %s:\n%s", what, want, out)
		}
	}
	p.open("/objects/endpointGroup/form:grp").click(".detail a", "Edit")
	p.fill(map[string]string{"netProfile": "slow"})
	p.click("button", "Review")
	p.until("only what changes is in the comparison", `document.querySelectorAll(".diff tbody tr").length === 1`)
	p.sees(".diff ins", "slow")
	p.click("button", "Save")
	p.sees(".detail dd", "slow")
	if out := c.netctl("group", "inspect", "-t", "form", "grp"); !strings.Contains(out, `"netProfile": "slow"`) {
		c.Errorf("netctl group inspect: %s", out)
	}

	p.open("/objects/network/form:net").click(".detail button", "Delete")
	p.sees(".review", "Used by", "form:grp")
	p.click(".review button", "Delete")
	p.sees(".review .bad", "network") // netmaster refuses, and says why

	for _, k := range [][2]string{{"serviceLB", "form:svc"}, {"endpointGroup", "form:grp"}, {"rule", "form:pol:1"}, {"policy", "form:pol"}, {"netprofile", "form:slow"}, {"network", "form:net"}, {"tenant", "form"}} {
		p.open("/objects/"+k[0]+"/"+k[1]).click(".detail button", "Delete")
		p.click(".review button", "Delete")
		p.until(k[1]+" is gone", fmt.Sprintf(`location.hash === "#/objects/%s" && ![...document.querySelectorAll(".table a.row")].some((e) => e.hash.includes("/objects/%s/" + encodeURIComponent(%q)))`, k[0], k[0], k[1]))
	}
	if out := c.netctl("tenant", "ls", "-q"); strings.Contains(out, "form") {
		c.Errorf("the tenant is still there: %s", out)
	}
}

// put sends an object to the API as it is.
func (p tab) put(path, body string) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPut, p.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		p.Fatalf("%s: %d %s", path, resp.StatusCode, text)
	}
}

// testMarkup: what looks like markup is shown as it is, everywhere.
func testMarkup(_ cluster, p tab) {
	const markup = `<b>bold</b><script>document.title.concat()</script>`
	p.open("/changes").sees("[data-live=live]", "Live")
	p.put("/api/v1/serviceLBs/shop:odd/", `{"key":"shop:odd","tenantName":"shop","serviceName":"odd","networkName":"front","ports":["80:80:TCP"],"selectors":["app=`+markup+`"]}`)
	p.open("/objects/serviceLB").sees(".table td", markup)
	p.open("/services/shop:odd").sees(".detail dd", markup)
	p.open("/objects/serviceLB/shop:odd").sees(".detail dd", markup)
	p.open("/objects/serviceLB/shop:odd?edit=1").until("the form has it", fmt.Sprintf("[...document.querySelectorAll('.form input')].some((e) => e.value === %q)", "app="+markup))
	p.open("/changes").sees(".changes", "shop:odd")
	p.open("/objects/serviceLB?q="+"%3Cimg%20src%3Dy%3E").sees(".table", "Nothing matches")
	p.open("/objects/%3Cb%3Ebold%3C%2Fb%3E").sees(".wait", "no kind of object called <b>bold</b>")
	if eval[bool](p, `!!document.querySelector("td b, dd b, .diff b, .wait b, .main script, body script")`) {
		p.Error("markup of an object has become part of the page")
	}
}

// testKeyboard: objects are found, opened and closed with keys alone.
func testKeyboard(_ cluster, p tab) {
	p.open("/").sees("h1", "Overview")
	p.do(chromedp.KeyEvent("/"))
	p.until("the search field has the focus", `document.activeElement?.type === "search"`)
	p.types(".find input", "db-acc") // the driver types the slash besides pressing its key
	p.sees("#found li", "shop:db-access")
	p.do(chromedp.KeyEvent("\r"))
	p.sees(".detail h2", "shop:db-access")
	eval[any](p, `document.querySelector(".detail a[aria-label=Close]").focus()`)
	p.do(chromedp.KeyEvent("\r"))
	p.until("it is closed", `!document.querySelector(".detail")`)
	eval[any](p, `document.querySelector(".skip").focus()`)
	p.do(chromedp.KeyEvent("\r"))
	p.until("the content has the focus", `document.activeElement?.id === "main"`)
}

// testPhone: nothing but tables is wider than a phone.
func testPhone(t *testing.T, p tab) {
	p.do(chromedp.EmulateViewport(390, 844))
	defer p.do(chromedp.EmulateViewport(1360, 860))
	for _, view := range views {
		p.open(view.hash).sees("h1", view.title)
		if eval[bool](p, `document.documentElement.scrollWidth > innerWidth || document.querySelector(".main").scrollWidth > innerWidth`) {
			t.Errorf("%s is wider than a phone", view.hash)
			p.keep("phone" + view.title)
		}
	}
	p.click("button", "☰")
	p.click(".side a", "Objects")
	p.sees("h1", "Networks")
}
