package inspect

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/fakedriver"
	"github.com/contiv/netplugin/ofnet"
)

// stuck is a driver that cannot take ports away.
type stuck struct{ *fakedriver.Driver }

func (stuck) Detach(context.Context, string) error { return errors.New("the switch is stuck") }

// An endpoint is reclaimed once; asking again, or for one that never was, changes
// nothing and says so.
func TestReclaim(t *testing.T) {
	d := fakedriver.New()
	const id = "net1.default-c1"
	for _, id := range []string{id, "net1.default-c2"} {
		if _, err := d.Attach(t.Context(), drivers.Attachment{EndpointID: id, ContainerID: "c"}, ofnet.VXLAN, 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		ports  Ports
		id     string
		status int
		body   string
		left   int
	}{
		{d, "net1.default-c3", http.StatusNotFound, "endpoint net1.default-c3 has no port on this host", 2},
		{stuck{d}, id, http.StatusInternalServerError, "the switch is stuck", 2},
		{d, id, http.StatusOK, "null", 1},
		{d, id, http.StatusNotFound, "endpoint net1.default-c1 has no port on this host", 1},
	} {
		w := httptest.NewRecorder()
		h := Handler(Sources{Reclaim: Reclaim(c.ports), Metrics: prometheus.NewRegistry()})
		h.ServeHTTP(w, httptest.NewRequest(http.MethodDelete, "/debug/reclaimEndpoint/"+c.id, nil))
		if w.Code != c.status || strings.TrimSpace(w.Body.String()) != c.body {
			t.Errorf("%s: %d %s, want %d %s", c.id, w.Code, w.Body, c.status, c.body)
		}
		if left := d.Attachments(); len(left) != c.left {
			t.Errorf("%s: left %v, want %d", c.id, left, c.left)
		}
	}
}
