package ca

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/netmaster/seal"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pace"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/signal"
)

// CA is the certificate authority on this netmaster. Create it with Open. Safe for
// concurrent use.
type CA struct {
	cfg   Config
	log   logrus.FieldLogger
	dir   pki.Dir
	creds *pki.Credentials
	limit *pace.Limiter // by address

	issuing sync.Mutex // one at a time, so that they do not fail each other's transactions

	changing sync.Mutex // who changes bundle, or the own certificate, and their files

	mu      sync.Mutex
	bundle  bundle
	store   objdb.Store          // nil: not open yet
	revoked map[string]time.Time // by name: certificates issued until then do not count
	masters []string             // addresses of netmasters that have a certificate
	record  record               // as the store has it
	problem string
	changed signal.Signal
}

// Open loads the authority from disk. If there is none it gets it from another netmaster,
// which it waits for until ctx ends, or, if no other one is named, makes it.
func Open(ctx context.Context, cfg Config) (*CA, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	c := &CA{
		cfg: cfg, log: cfg.Log, dir: pki.Dir(cfg.Dir), creds: cfg.OwnPKI, limit: pace.New(askRate, askBurst), revoked: map[string]time.Time{},
	}
	b, err := c.load(ctx)
	if err != nil {
		return nil, err
	}
	c.bundle = b
	if c.creds != nil {
		return c, nil
	}
	c.creds = pki.NewCredentials()
	if err := c.creds.SetRoots(b.roots()); err != nil {
		return nil, err
	}
	return c, c.ensureOwn(b)
}

// load gets the bundle from disk, from another netmaster, or makes it.
func (c *CA) load(ctx context.Context) (bundle, error) {
	b, err := readBundle(c.cfg.Dir, bundleFile)
	if !errs.Is(err, errs.NotFound) {
		return b, err
	}
	if others, first := c.cfg.others(); len(others) > 0 {
		b, err = c.joinMasters(ctx, others, first)
		if err == nil {
			err = b.write(c.cfg.Dir, bundleFile)
		}
		if !errors.Is(err, errNobody) {
			return b, err
		}
	}
	if _, err := c.dir.Load(); !errs.Is(err, errs.NotFound) {
		return b, errs.New(errs.Invalid, "%s has a certificate but not the key of the certificate authority (%s): "+
			"copy that file from another netmaster, or join one (--join, --cluster-secret-file); "+
			"if no netmaster has it any more run: netmaster ca new --tls-dir %s", c.cfg.Dir, bundleFile, c.cfg.Dir)
	}
	b, err = newBundle(c.cfg.OwnPKI != nil, time.Now())
	if err != nil {
		return b, err
	}
	c.log.WithField("hash", b.hash()).WithField("dir", c.cfg.Dir).Info("made the certificate authority of this cluster")
	return b, b.write(c.cfg.Dir, bundleFile)
}

// Credentials are those of this netmaster.
func (c *CA) Credentials() *pki.Credentials { return c.creds }

// Keys returns the cluster's master keys, newest first. Derive from them (HKDF, RFC 5869);
// do not use them as they are.
func (c *CA) Keys() []seal.Key { return slices.Clone(c.current().Keys) }

// Hash returns the SPKI hash of the authority that signs, "" with the user's own.
func (c *CA) Hash() string { return c.current().hash() }

// SetStore says where the records are, once the store is open.
func (c *CA) SetStore(s objdb.Store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store = s
	c.changed.Broadcast()
}

// Run keeps the certificate of this netmaster fresh, applies revocations, and keeps in step
// with other netmasters, until ctx ends.
func (c *CA) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	if c.cfg.OwnPKI == nil {
		keeper := pki.Keeper{
			Credentials: c.creds, Log: c.log, Renew: func(context.Context) error { return c.renewOwn() },
			Advice: "see the log and `netctl ca show`",
		}
		group.Go(func() error { keeper.Keep(ctx); return nil })
		group.Go(func() error { c.finishRotations(ctx); return nil })
	}
	group.Go(func() error {
		store := c.waitForStore(ctx)
		if store == nil {
			return nil
		}
		watches, ctx := errgroup.WithContext(ctx)
		watches.Go(func() error { c.followHosts(ctx, store); return nil })
		watches.Go(func() error { c.followRecord(ctx, store); return nil })
		watches.Go(func() error { c.publish(ctx, store); return nil })
		return watches.Wait()
	})
	group.Go(func() error { c.keepInStep(ctx); return nil })
	return group.Wait()
}

func (c *CA) waitForStore(ctx context.Context) objdb.Store {
	for {
		changed := c.changed.Next()
		c.mu.Lock()
		store := c.store
		c.mu.Unlock()
		if store != nil {
			return store
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

func (c *CA) current() bundle {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bundle
}

// openStore returns the store; the error's kind is Unavailable before it is open.
func (c *CA) openStore() (objdb.Store, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store == nil {
		return nil, errs.New(errs.Unavailable, "the store is not open yet, try again later")
	}
	return c.store, nil
}

// adopt makes another bundle the current one, on disk first, if it is newer than what there
// is by then.
func (c *CA) adopt(b bundle) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	if b.Epoch <= c.current().Epoch {
		return nil
	}
	return c.replace(b)
}

// replace is adopt for who has locked changing.
func (c *CA) replace(b bundle) error {
	if err := b.write(c.cfg.Dir, bundleFile); err != nil {
		return err
	}
	c.mu.Lock()
	c.bundle = b
	c.mu.Unlock()
	defer c.changed.Broadcast()
	if c.cfg.OwnPKI != nil {
		return nil
	}
	if err := c.creds.SetRoots(b.roots()); err != nil {
		return err
	}
	return c.ensureOwn(b)
}

// isRevoked is asked at every handshake.
func (c *CA) isRevoked(cert *x509.Certificate) bool {
	c.mu.Lock()
	until, ok := c.revoked[pki.PeerOf(cert).Name]
	c.mu.Unlock()
	return ok && !pki.IssuedAt(cert).After(until)
}
