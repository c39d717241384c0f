package commands

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/state/securityapi"
)

// TestDescribeSecurity: an operator who closes a cluster sees who is left behind.
func TestDescribeSecurity(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	s := securityapi.Status{Mode: "accept", Hosts: []securityapi.Host{{State: "valid"}, {State: "revoked"}, {State: "valid"}}}
	want := "TLS: accept\nCertificates: 2 valid, 0 expired, 1 revoked\nNo client has come without TLS since this netmaster started.\n"
	if diff := cmp.Diff(want, describeSecurity(s, now)); diff != "" {
		t.Error(diff)
	}
	s.Plain = map[string]time.Time{"10.0.0.2": now.Add(-time.Minute), "10.0.0.1": now}
	want = "TLS: accept\nCertificates: 2 valid, 0 expired, 1 revoked\nWithout TLS, since this netmaster started:\n  10.0.0.1, last 0s ago\n  10.0.0.2, last 1m0s ago\n"
	if diff := cmp.Diff(want, describeSecurity(s, now)); diff != "" {
		t.Error(diff)
	}
}
