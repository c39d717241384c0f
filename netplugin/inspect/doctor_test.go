package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/errs"
)

// TestDoctor: the agent tells what it knows, its own checks with it.
func TestDoctor(t *testing.T) {
	h := Handler(Sources{
		Host: "host1", Checks: map[string]func() error{"store": func() error { return errors.New("no answer") }},
		Examine: func(context.Context) doctorapi.Switch { return doctorapi.Switch{Version: "3.1.0"} },
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", doctorapi.PathAgent, nil))
	var got doctorapi.Host
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	if got.Host != "host1" || got.Checks["store"] != "no answer" || got.Switch.Version != "3.1.0" || time.Since(got.Now).Abs() > time.Minute {
		t.Errorf("%+v", got)
	}
}

func TestProbe(t *testing.T) {
	for _, c := range []struct {
		body   string
		err    error
		status int
		want   string
	}{
		{`{"count":3}`, nil, 200, `"frames":3`},
		{`{`, nil, 400, "probe: "},
		{strings.Repeat(" ", doctorapi.MaxProbe) + `{}`, nil, 400, "too large"},
		{`{}`, errs.New(errs.Invalid, "probe: 0 frames"), 400, "probe: 0 frames"},
		{`{}`, errs.New(errs.Unavailable, "probe: no switch"), 503, "probe: no switch"},
	} {
		h := Handler(Sources{Probe: func(_ context.Context, p doctorapi.Probe) (int, error) { return p.Count, c.err }})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", doctorapi.PathProbe, strings.NewReader(c.body)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%.40s: %d %s", c.body, w.Code, w.Body)
		}
	}
}
