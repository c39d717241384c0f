package join

import (
	"context"
	"math/rand/v2"
	"net/http"

	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/retry"
)

// followAuthority takes part in rotations of the authority, until ctx ends.
func (m *Member) followAuthority(ctx context.Context) {
	for {
		if err := m.compareAuthority(ctx); err != nil && ctx.Err() == nil {
			m.explain("cannot compare the certificate authority with netmaster; retrying", err)
		}
		if !retry.Pause(ctx, m.cfg.Compare/2+rand.N(m.cfg.Compare)) {
			return
		}
	}
}

// compareAuthority renews the certificate if another authority signs by now, or if it does
// not count any more, and forgets authorities that are void.
func (m *Member) compareAuthority(ctx context.Context) error {
	var answer securityapi.Roots
	err := m.eachMaster(func(base string) error {
		resp, err := securityapi.Call(ctx, m.client, http.MethodGet, base+securityapi.PathRoots, nil, &answer)
		if resp != nil {
			m.clock.compare(base, resp.Header)
		}
		return explainTLS(err)
	})
	if refused(err) {
		return m.renew(ctx)
	}
	if err != nil {
		return err
	}
	if m.signer() != answer.Active {
		return m.renew(ctx)
	}
	return m.takeRoots([]byte(answer.Roots))
}

// takeRoots replaces what is believed, if it is not the same.
func (m *Member) takeRoots(text []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if string(pki.EncodeCertificates(m.creds.Roots()...)) == string(text) {
		return nil
	}
	stored, err := m.dir.Load()
	if err != nil {
		return err
	}
	if err := m.creds.SetRoots(text); err != nil {
		return err
	}
	stored.Roots = text
	return m.dir.Save(stored)
}

// signer returns the hash of the authority that has signed the certificate, "" if it is not
// among those that are believed.
func (m *Member) signer() string {
	leaf := m.creds.Leaf()
	for _, r := range m.creds.Roots() {
		if leaf.CheckSignatureFrom(r) == nil {
			return pki.KeyHash(r)
		}
	}
	return ""
}
