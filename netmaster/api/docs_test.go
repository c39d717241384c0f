package api_test

import (
	"encoding/json"
	"html"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
)

// fetch gets a page with its headers.
func fetch(t *testing.T, url string) (int, http.Header, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// TestDocs checks that the page of the API says all of the OpenAPI document, that its
// links lead somewhere, and that it needs and allows nothing from elsewhere.
func TestDocs(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	status, header, page := fetch(t, base+"/docs")
	if status != 200 || header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("status %d, %v", status, header)
	}
	if _, _, same := fetch(t, base+"/docs/"); same != page {
		t.Error("/docs/ is another page")
	}
	want := "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	if diff := cmp.Diff(want, header.Get("Content-Security-Policy")); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}

	_, _, text := fetch(t, base+"/api/v1/openapi.json")
	var d struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Description string }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	plain := html.UnescapeString(page)
	says := func(part string) {
		t.Helper()
		if !strings.Contains(plain, part) {
			t.Errorf("the page does not have %s", part)
		}
	}
	forms := 0
	for path, item := range d.Paths {
		for _, method := range slices.Sorted(maps.Keys(item)) {
			if method == "parameters" {
				continue
			}
			method = strings.ToUpper(method)
			says(`<code class="method ` + method + `">` + method + `</code> <code>` + path + `</code>`)
			if method == "GET" {
				forms++
				says(`<form data-path="` + path + `">`)
			}
		}
	}
	if got := strings.Count(page, "<form "); got != forms || forms < 40 {
		t.Errorf("%d forms for %d paths to get", got, forms)
	}
	for name, s := range d.Components.Schemas {
		says(`<section id="schema-` + name + `"`)
		for field, p := range s.Properties {
			says("<code>" + field + "</code>")
			says(p.Description)
		}
	}
	says("required; one of vlan, vxlan")
	says("0 to 16777216")
	says("at most 64 bytes")
	says("default data")
	says("set by the server")

	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]] {
			t.Errorf("id %s is there twice", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(` (?:href|src|action)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if name, ok := strings.CutPrefix(m[1], "#"); ok {
			if !ids[name] {
				t.Errorf("nothing at #%s", name)
			}
			continue
		}
		if status, _, _ := fetch(t, base+m[1]); !strings.HasPrefix(m[1], "/") || status != 200 {
			t.Errorf("%s: status %d", m[1], status)
		}
	}
	if found := regexp.MustCompile(`(?i)<style|<script[^>]*>[^<]| style=| on[a-z]+=|javascript:|https?:`).FindString(page); found != "" {
		t.Errorf("the policy forbids %q", found)
	}
	for name, kind := range map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"} {
		status, header, text := fetch(t, base+"/docs/"+name)
		if status != 200 || header.Get("Content-Type") != kind || header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: status %d, %v", name, status, header)
		}
		if found := regexp.MustCompile(`https?:|//[a-z]+\.|@import|url\(|innerHTML|eval|Function\(`).FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
	for _, path := range []string{"/docs/page.html", "/docs/nothing.js", "/docs/page", "/docs/x/y"} {
		if status, _, _ := fetch(t, base+path); status != 404 {
			t.Errorf("%s: status %d", path, status)
		}
	}
}
