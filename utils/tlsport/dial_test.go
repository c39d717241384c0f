package tlsport_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/pki/pkitest"
	"github.com/contiv/netplugin/utils/tlsport"
)

// TestDialer: which clients reach which servers, and as whom.
func TestDialer(t *testing.T) {
	const refused = "error"
	for server, want := range map[tlsport.Mode]map[tlsport.Mode]string{
		tlsport.Off:     {tlsport.Off: "plain", tlsport.Accept: "plain", tlsport.Require: refused},
		tlsport.Accept:  {tlsport.Off: "plain", tlsport.Accept: "agent h1", tlsport.Require: "agent h1"},
		tlsport.Require: {tlsport.Off: "this port serves TLS only", tlsport.Accept: "agent h1", tlsport.Require: "agent h1"},
	} {
		s := serve(t, tlsport.Config{Mode: server}, pki.CertificateOptional)
		creds := pkitest.Credentials(t, s.ca, pki.UnitAgent, "h1")
		for mode, want := range want {
			d := &tlsport.Dialer{Mode: mode, TLS: pki.ClientConfig(creds, pki.UnitMaster)}
			tr := &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}
			got, err := get(&http.Client{Transport: tr}, "http://"+s.addr)
			switch {
			case want == refused && (err == nil || !strings.Contains(err.Error(), "does not speak TLS")):
				t.Errorf("%s → %s: %q, %v", mode, server, got, err)
			case want != refused && (err != nil || !strings.HasPrefix(got, want)):
				t.Errorf("%s → %s: %q, %v, want %q", mode, server, got, err, want)
			}
		}
	}
}

// TestDialerChecksTheUnit: a host that takes the place of a netmaster is told nothing.
func TestDialerChecksTheUnit(t *testing.T) {
	s := serve(t, tlsport.Config{Mode: tlsport.Require}, pki.CertificateOptional)
	for _, mode := range []tlsport.Mode{tlsport.Accept, tlsport.Require} {
		d := &tlsport.Dialer{Mode: mode, TLS: pki.ClientConfig(pkitest.Credentials(t, s.ca, pki.UnitAgent, "h1"), pki.UnitAgent)}
		if conn, err := d.DialContext(t.Context(), "tcp", s.addr); err == nil || !strings.Contains(err.Error(), "expected one of unit [agent]") {
			t.Errorf("%s: %v %v", mode, conn, err)
		}
	}
}
