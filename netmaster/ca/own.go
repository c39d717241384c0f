package ca

import (
	"crypto/x509"
	"time"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

// ensureOwn gives this netmaster a certificate of the current authority, if it has none or
// the one it has is due.
func (c *CA) ensureOwn(b bundle) error {
	stored, err := c.dir.Load()
	if err == nil {
		err = stored.Use(c.creds)
	}
	if err != nil && !errs.Is(err, errs.NotFound) {
		c.log.WithError(err).Warn("the certificate of this netmaster is damaged, making another one")
	}
	if err := c.creds.SetRoots(b.roots()); err != nil { // those on disk are older
		return err
	}
	leaf := c.creds.Leaf()
	if err == nil && leaf != nil && pki.PeerOf(leaf).Name == c.cfg.Name && time.Now().Before(pki.RenewAt(leaf)) {
		if leaf.CheckSignatureFrom(b.authority.Cert) == nil {
			return c.dir.Save(pki.Stored{Cert: stored.Cert, Key: stored.Key, Roots: b.roots()})
		}
	}
	if c.mustHold(b) == nil {
		return c.makeOwn(b)
	}
	return nil
}

// renewOwn replaces the certificate of this netmaster.
func (c *CA) renewOwn() error {
	c.changing.Lock()
	defer c.changing.Unlock()
	b := c.current()
	if err := c.mustHold(b); err != nil {
		return err
	}
	return c.makeOwn(b)
}

// mustHold says why the certificate of a former authority has to stay in use: the key of
// that one is lost, so that hosts which believe it alone believe only this certificate.
func (c *CA) mustHold(b bundle) error {
	leaf := c.creds.Leaf()
	if b.Cross != "" || b.Former == "" || leaf == nil || leaf.CheckSignatureFrom(b.authority.Cert) == nil {
		return nil
	}
	if _, err := c.creds.Verify([]*x509.Certificate{leaf}, pki.UnitMaster); err != nil {
		return nil
	}
	left, life := time.Until(leaf.NotAfter), leaf.NotAfter.Sub(pki.IssuedAt(leaf))
	if left < life/10 {
		return nil
	}
	return errs.New(errs.Conflict, "hosts still have to renew their certificates, see `netctl ca show`")
}

func (c *CA) makeOwn(b bundle) error {
	cert, key, err := b.authority.Issue(pki.Subject{
		Name: c.cfg.Name, Unit: pki.UnitMaster, IPs: c.cfg.IPs, Names: c.cfg.DNSNames, Valid: c.cfg.CertTTL,
	}, time.Now())
	if err != nil {
		return err
	}
	s := pki.Stored{Cert: b.chain(cert), Key: key, Roots: b.roots()}
	if err := c.dir.Save(s); err != nil {
		return err
	}
	return s.Use(c.creds)
}
