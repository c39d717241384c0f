package doctor

import (
	"fmt"
	"time"

	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/state/doctorapi"
)

// certificates finds those of which three quarters of the time have passed: they are renewed
// after two thirds.
var certificates = check{"certificates", func(f *Facts) (out []doctorapi.Finding) {
	out = judgeCertificate("netmaster", "netmaster", f.Certificate, f.Now)
	for _, label := range f.labels() {
		out = append(out, ofHost(label, f.Hosts[label])...)
	}
	return out
}}

func ofHost(label string, h agents.Facts) []doctorapi.Finding {
	if h.Certificate == nil {
		return nil
	}
	return judgeCertificate(host(label), "netplugin", h.Certificate, h.Asked)
}

func judgeCertificate(object, daemon string, c *doctorapi.Certificate, now time.Time) []doctorapi.Finding {
	if c == nil || c.To.Sub(now)*4 > c.To.Sub(c.From) {
		return nil
	}
	f := doctorapi.Finding{
		Code: "certificate-ends", Severity: doctorapi.Warning, Object: object,
		Text: fmt.Sprintf("its certificate ends at %s and should have been renewed", c.To.UTC().Format(time.RFC3339)), Do: "see journalctl -u " + daemon + " there for why it cannot be renewed",
	}
	if !now.Before(c.To) {
		f.Severity, f.Text = doctorapi.Error, "its certificate has ended at "+c.To.UTC().Format(time.RFC3339)
		f.Do = "see the clocks; let it join again: netctl host token create, and --join-token-file"
	}
	return []doctorapi.Finding{f}
}

// authorityWithin is how long before its end a certificate authority has to be replaced.
const authorityWithin = 90 * 24 * time.Hour

// authority finds a certificate authority that ends soon, and with it all certificates.
var authority = check{"authority", func(f *Facts) []doctorapi.Finding {
	if f.Authority == nil || f.Authority.To.Sub(f.Now) > authorityWithin {
		return nil
	}
	return []doctorapi.Finding{{
		Code: "authority-ends", Severity: doctorapi.Warning, Object: "certificate authority", Text: "it ends at " + f.Authority.To.UTC().Format(time.RFC3339),
		Do: "replace it: netctl ca rotate; with a PKI of your own, renew it there",
	}}
}}
