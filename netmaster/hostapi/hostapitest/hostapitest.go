// Package hostapitest writes the records of hosts to a store as a leading netmaster does,
// without one, for tests.
package hostapitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/hostapi"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Master is what an agent needs of netmaster to have its records written.
type Master struct{ Store objdb.Store }

// PutHostRecords changes what a host has.
func (m Master) PutHostRecords(ctx context.Context, host string, r masterapi.HostRecords) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	s := hostapi.New(hostapi.Config{Log: silent, Store: m.Store, Fence: objdb.Absent("/nobody/else/leads")})
	ctx = identity.With(ctx, identity.Identity{Kind: identity.Host, Name: host, How: "certificate"})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPut, masterapi.HostPath(host, masterapi.HostRecord), bytes.NewReader(body)))
	if w.Code != http.StatusOK {
		return errs.New(errs.Unavailable, "status %d: %s", w.Code, w.Body)
	}
	return nil
}
