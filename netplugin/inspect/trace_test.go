package inspect

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/contiv/netplugin/state/traceapi"
	"github.com/contiv/netplugin/utils/errs"
)

func TestTrace(t *testing.T) {
	for _, c := range []struct {
		body   string
		err    error
		status int
		want   string
	}{
		{`{"endpoint":"e"}`, nil, 200, `"host":"e"`},
		{`{`, nil, 400, "request body: "},
		{strings.Repeat(" ", maxTraceRequest) + `{}`, nil, 400, "too large"},
		{`{}`, errs.New(errs.Invalid, "trace: bad"), 400, "trace: bad"},
		{`{}`, errs.New(errs.NotFound, "trace: who?"), 404, "trace: who?"},
		{`{}`, errs.New(errs.Unavailable, "trace: no switch"), 503, "trace: no switch"},
		{`{}`, errors.New("trace: broken"), 500, "trace: broken"},
	} {
		h := Handler(Sources{Trace: func(_ context.Context, req traceapi.HopRequest) (*traceapi.Hop, error) {
			return &traceapi.Hop{Host: req.Endpoint}, c.err
		}})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", traceapi.PathAgent, strings.NewReader(c.body)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%.40s: %d %s", c.body, w.Code, w.Body)
		}
	}
}
