package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/netmaster/daemon"
	"github.com/contiv/netplugin/netmaster/intent/intenttest"
	"github.com/contiv/netplugin/objdb/memory"
)

// FuzzRequest sends any body anywhere. The answer must be one line, with one of the
// statuses there are, and never a fault of ours.
func FuzzRequest(f *testing.F) {
	const path = "/api/v1/networks/default:n/"
	f.Add("POST", path, `{"tenantName":"default","networkName":"n","encap":"vxlan","subnet":"10.1.1.0/24","ipv6Subnet":"2001:db8::/64"}`)
	f.Add("POST", groupPath+"default:g/", `{"groupName":"g","networkName":"n","tenantName":"default","ipPool":"10.1.1.5-10.1.1.6"}`)
	f.Add("POST", globalPath+"global/", `{"name":"global","pvtSubnet":"172.19.0.0/16","vlans":"1-4094","vxlans":"1-10000"}`)
	f.Add("POST", create, ep("n", "g", "c", "10.1.1.5"))
	f.Add("POST", del, gone("n", "c"))
	f.Add("POST", alloc, `{"NetworkID":"n:g.default","AddressPool":"10.1.1.0/24:default","PreferredIPv4Address":"10.1.1.6/24"}`)
	f.Add("POST", rel, `{"NetworkID":"|10.1.1.0/24","IPv4Address":"10.1.1.6"}`)
	f.Add("POST", update, `{"Tenant":"default","Network":"g","EndpointID":"c","Event":"start","Labels":{"a":"b"}}`)
	f.Add("GET", inspect+"endpoints/c/", "")
	f.Add("DELETE", path, "")
	f.Add("GET", "/docs", "")
	f.Add("GET", "/docs/page.js", "")

	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	store := memory.New()
	lead, err := intenttest.Lead(f.Context(), store)
	if err != nil {
		f.Fatal(err)
	}
	h, err := daemon.NewLeader(apitest.Config(log))(f.Context(), store, lead)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(path, "/") {
			return
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://netmaster", strings.NewReader(body))
		if err != nil {
			return
		}
		r.URL = u
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch text := w.Body.String(); w.Code {
		case http.StatusOK, http.StatusNotFound, http.StatusInternalServerError:
			page := w.Code == http.StatusOK && strings.HasPrefix(w.Header().Get("Content-Type"), "text/") // of /docs
			if !page && strings.Count(text, "\n") != 1 || strings.Contains(text, "internal fault") {
				t.Errorf("%s %s %s: %d %q", method, path, body, w.Code, text)
			}
		case http.StatusMovedPermanently:
		default:
			t.Errorf("%s %s %s: status %d %q", method, path, body, w.Code, text)
		}
	})
}
