package ca

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/retry"
)

const recordKey = state.AuthRoot + "ca"

// record says in the store which authority is the current one, so that netmasters know when
// to ask each other. It proves nothing.
type record struct {
	Epoch    int64  `json:"epoch"`
	Hash     string `json:"hash"`
	Finished bool   `json:"finished"` // no former authority counts any more
}

func (c *CA) serveRotate(r *http.Request) (any, error) {
	var req securityapi.RotateRequest
	if err := readBody(r, &req); err != nil {
		return nil, err
	}
	act := c.rotate
	if req.Finish {
		act = c.finish
	}
	if c.cfg.OwnPKI != nil {
		return nil, refuse(notFound, "this cluster has its own certificates (--tls-ca): replace the files, they are read again")
	}
	if err := repeat(r.Context(), act); err != nil {
		return nil, err
	}
	c.log.WithField("user", identity.From(r.Context()).String()).WithField("hash", c.Hash()).Info("certificate authority changed")
	hosts, err := c.hosts(r.Context())
	return c.describe(hosts), err
}

// casTries is how often a change of a record is repeated that others change as well.
const casTries = 20

// repeat does what other netmasters may change the record of at the same time. The error's kind
// is Unavailable if they do so all the time.
func repeat(ctx context.Context, act func(context.Context) error) error {
	for range casTries {
		if err := act(ctx); !errors.Is(err, objdb.ErrCompareFailed) {
			return err
		}
	}
	return errs.New(errs.Unavailable, "too many netmasters change the same record at once, try again")
}

// rotate makes the next authority. It is on disk before the store tells of it, and signs
// after that.
func (c *CA) rotate(ctx context.Context) error {
	store, err := c.openStore()
	if err != nil {
		return err
	}
	now, err := getRecord[record](ctx, store, recordKey)
	if err != nil {
		return err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	b := c.current()
	switch {
	case b.Former != "":
		return refuse(conflict, "a rotation is under way; see: netctl ca show; to end it at once run: netctl ca rotate --finish")
	case now.exists && now.value.Hash != b.hash():
		return refuse(conflict, "this netmaster does not have the cluster's current authority (%s)", now.value.Hash)
	}
	next, err := b.next(max(b.Epoch, now.value.Epoch)+1, time.Now())
	if err != nil {
		return err
	}
	if err := next.write(c.cfg.Dir, nextFile); err != nil {
		return err
	}
	put, err := putRecord(recordKey, record{Epoch: next.Epoch, Hash: next.hash()})
	if err != nil {
		return err
	}
	_, err = store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{now.unchanged()}, Then: []objdb.Op{put}})
	switch {
	case errors.Is(err, objdb.ErrCompareFailed):
		return errors.Join(err, c.removeNext())
	case err != nil:
		return err // if the store has it all the same, followRecord finds out
	}
	return c.activate(next)
}

// activate makes a rotation's authority the current one. changing is locked.
func (c *CA) activate(next bundle) error {
	if next.Epoch > c.current().Epoch {
		if err := c.replace(next); err != nil {
			return err
		}
	}
	return c.removeNext()
}

func (c *CA) removeNext() error {
	if err := os.Remove(filepath.Join(c.cfg.Dir, nextFile)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// finish makes the former authorities void.
func (c *CA) finish(ctx context.Context) error {
	store, err := c.openStore()
	if err != nil {
		return err
	}
	b := c.current()
	now, err := getRecord[record](ctx, store, recordKey)
	if err != nil {
		return err
	}
	if now.value.Hash != b.hash() || b.Former == "" {
		return refuse(conflict, "no rotation is under way; see: netctl ca show")
	}
	now.value.Finished = true
	put, err := putRecord(recordKey, now.value)
	if err != nil {
		return err
	}
	if _, err := store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{now.unchanged()}, Then: []objdb.Op{put}}); err != nil {
		return err
	}
	return c.dropFormer(now.value)
}

// dropFormer applies the end of a rotation.
func (c *CA) dropFormer(r record) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	b := c.current()
	if !r.Finished || r.Hash != b.hash() || b.Former == "" {
		return nil
	}
	c.log.WithField("hash", b.hash()).Info("rotation of the certificate authority finished")
	return c.replace(b.finished())
}

// describe says what the authority is, and who has yet to get a certificate of it.
func (c *CA) describe(hosts []securityapi.Host) securityapi.Authority {
	b := c.current()
	c.mu.Lock()
	a := securityapi.Authority{Problem: c.problem}
	c.mu.Unlock()
	if b.authority == nil {
		return a
	}
	a.Hash, a.Expires, a.Rotating, a.RootsPEM = b.hash(), b.authority.Cert.NotAfter.UTC(), b.Former != "", string(b.roots())
	if former, err := pki.ParseCertificates([]byte(b.Former)); err == nil {
		for _, f := range former {
			a.Former = append(a.Former, pki.KeyHash(f))
		}
	}
	if a.Rotating {
		a.Waiting, _ = waiting(hosts, b)
		a.ByHand = c.cfg.FinishByHand
	}
	return a
}

// finishRotations ends a rotation when everybody has a new certificate, until ctx ends,
// unless that is left to an administrator.
func (c *CA) finishRotations(ctx context.Context) {
	if c.cfg.FinishByHand {
		return
	}
	for retry.Pause(ctx, max(c.cfg.Settle/5, 100*time.Millisecond)) {
		b := c.current()
		if b.Former == "" {
			continue
		}
		hosts, err := c.hosts(ctx)
		if err != nil {
			continue // the store says so elsewhere
		}
		names, since := waiting(hosts, b)
		if len(names) > 0 || len(hosts) == 0 || time.Since(later(since, b.Rotated)) < c.cfg.Settle {
			continue
		}
		if err := repeat(ctx, c.finish); err != nil && ctx.Err() == nil {
			c.log.WithError(err).Warn("cannot finish the rotation of the certificate authority; retrying")
		}
	}
}

// StartOver makes an authority for a cluster whose key is lost, on the disk of a netmaster
// that is stopped. The certificate that this netmaster has keeps counting, so that hosts
// still believe it, and get the new authority from it.
func StartOver(dir string) (hash string, err error) {
	if _, err := readBundle(dir, bundleFile); !errs.Is(err, errs.NotFound) {
		return "", errs.New(errs.Exists, "%s has the certificate authority; remove %s if it cannot be used", dir, filepath.Join(dir, bundleFile))
	}
	stored, err := pki.Dir(dir).Load()
	if err != nil {
		return "", errs.New(errs.KindOf(err), "the certificate of this netmaster is needed, as hosts believe nothing else: %w", err)
	}
	b, err := newBundle(false, time.Now())
	if err != nil {
		return "", err
	}
	b.Epoch, b.Former, b.Rotated = time.Now().Unix(), string(stored.Roots), time.Now().UTC()
	return b.hash(), b.write(dir, bundleFile)
}
