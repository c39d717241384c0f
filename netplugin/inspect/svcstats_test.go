package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/drivers"
	of "github.com/contiv/netplugin/libopenflow"
)

func count(vip, provider string, in, out uint64) drivers.ServiceCount {
	return drivers.ServiceCount{
		Service: "web:default", Client: netip.MustParseAddr("10.1.1.5"), VIP: netip.MustParseAddrPort(vip), Provider: netip.MustParseAddrPort(provider),
		Proto: of.ProtoTCP, PacketsIn: in, BytesIn: in * 75, PacketsOut: out, BytesOut: out * 60,
	}
}

// The statistics have the form that tools know.
func TestServiceStats(t *testing.T) {
	counts, failure := []drivers.ServiceCount{
		count("10.254.0.10:443", "10.1.1.2:8443", 1, 0), count("10.254.0.10:80", "10.1.1.2:8080", 12, 0), count("10.254.0.10:80", "10.1.1.3:8080", 0, 2),
	}, error(nil)
	h := Handler(Sources{Services: func(context.Context) ([]drivers.ServiceCount, error) { return counts, failure }})
	get := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/svcstats", nil))
		return w
	}
	const want = `{"10.1.1.5":{"EndpointIP":"10.1.1.5","VrfName":"","PortStats":{"PacketsIn":0,"BytesIn":0,"PacketsOut":0,"BytesOut":0},
 "SvcStats":{"10.254.0.10":{"ServiceIP":"10.254.0.10","ServiceVRF":"","Protocol":"TCP","SvcPort":"80","ProvPort":"8080",
  "SvcStats":{"PacketsIn":0,"BytesIn":0,"PacketsOut":0,"BytesOut":0},
  "ProvStats":{"10.1.1.2":{"ProviderIP":"10.1.1.2","ServiceIP":"","ServiceVrf":"","PacketsIn":13,"BytesIn":975,"PacketsOut":0,"BytesOut":0},
   "10.1.1.3":{"ProviderIP":"10.1.1.3","ServiceIP":"","ServiceVrf":"","PacketsIn":0,"BytesIn":0,"PacketsOut":2,"BytesOut":120}}}}}}`
	var have, expected any
	w := get()
	if err := errors.Join(json.Unmarshal(w.Body.Bytes(), &have), json.Unmarshal([]byte(want), &expected)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected, have); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
	counts, failure = nil, nil
	if body := strings.TrimSpace(get().Body.String()); body != "{}" {
		t.Errorf("without services: %s", body)
	}
	failure = errors.New("no channel")
	if w := get(); w.Code != 500 || !strings.HasPrefix(w.Body.String(), "Error fetching stats from driver") {
		t.Errorf("without a switch: %d %s", w.Code, w.Body)
	}
}
