package intent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/seal"
	"github.com/contiv/netplugin/utils/errs"
)

// sealPassword makes the password of a speaker what is stored. Where passwords are sealed,
// they are not shown either; so an update without one, or with what is shown, keeps the
// old one. Only deleting the speaker removes it.
func sealPassword(s Sealer, old, b *contivmodel.Bgp) error {
	kept := b.Password == contivmodel.HiddenPassword || b.Password == "" && s != nil
	switch {
	case old != nil && old.Password != "" && (kept || b.Password == old.Password):
		b.Password = old.Password
	case b.Password == contivmodel.HiddenPassword || seal.Sealed(b.Password):
		return errs.New(errs.Invalid, "password of Bgp %s: expected a password, got what stands for one", b.Key)
	}
	if s == nil || b.Password == "" || seal.Sealed(b.Password) {
		return nil
	}
	sealed, err := s.Seal([]byte(b.Password))
	b.Password = sealed
	return err
}

// passwordForAgent is what the record of a speaker's agent says of its password: the
// password itself, or a name of it that changes with it.
func passwordForAgent(cfg Config, b *contivmodel.Bgp) (password, secret string, err error) {
	if !seal.Sealed(b.Password) {
		return b.Password, "", nil
	}
	if cfg.OpenState {
		plain, err := cfg.Secrets.Open(b.Password)
		return string(plain), "", err
	}
	sum := sha256.Sum256([]byte(b.Password))
	return "", hex.EncodeToString(sum[:8]), nil
}

// showBgp is a speaker as users see it.
func showBgp(b *contivmodel.Bgp) {
	if seal.Sealed(b.Password) {
		b.Password = contivmodel.HiddenPassword
	}
}

// BGPPassword returns the password of a host's speaker; "" if it has none. The error's kind
// is NotFound if there is no speaker.
func (e *Engine) BGPPassword(host string) (string, error) {
	m := e.model
	m.mu.RLock()
	r, ok := m.bgps.base[host]
	m.mu.RUnlock()
	switch {
	case !ok:
		return "", m.bgps.kind.NotFound()
	case !seal.Sealed(r.v.Password):
		return r.v.Password, nil
	case e.cfg.Secrets == nil:
		return "", errs.New(errs.Invalid, "the password of Bgp %s is sealed, and this netmaster has no keys", host)
	}
	plain, err := e.cfg.Secrets.Open(r.v.Password)
	if err != nil {
		return "", fmt.Errorf("password of Bgp %s: %w", host, err)
	}
	return string(plain), nil
}

// sealPasswords brings what is stored in line with how passwords are to be stored: a
// cluster may have been open before. A password that cannot be opened stays as it is.
func (e *Engine) sealPasswords(ctx context.Context) error {
	if e.cfg.Secrets == nil {
		return nil
	}
	bgps := e.model.bgps
	e.model.mu.RLock()
	speakers := maps.Clone(bgps.base)
	e.model.mu.RUnlock()
	for _, key := range slices.Sorted(maps.Keys(speakers)) {
		b := speakers[key].v
		password, secret, err := passwordForAgent(e.cfg, b)
		if err != nil {
			e.cfg.Log.WithError(err).WithField("host", key).Error("cannot open the password of a BGP speaker; set it again")
			continue
		}
		rec, ok := bgps.records.base[key]
		if (b.Password == "" || seal.Sealed(b.Password)) && ok && rec.v.Password == password && rec.v.Secret == secret {
			continue
		}
		same := *b
		if _, err := bgps.collection(e).store(ctx, &same); err != nil {
			return fmt.Errorf("seal the password of Bgp %s: %w", key, err)
		}
	}
	return nil
}
