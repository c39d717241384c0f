package ca

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/retry"
)

// askEvery is how often netmasters compare what they have even if no record tells them to.
const askEvery = time.Minute

// followRecord applies what the store says of the current authority, until ctx ends.
func (c *CA) followRecord(ctx context.Context, store objdb.Store) {
	for batch := range store.Watch(ctx, recordKey) {
		for _, ev := range batch.Events {
			var r record
			if ev.KV.Key != recordKey || ev.Deleted {
				continue
			}
			if err := json.Unmarshal(ev.KV.Value, &r); err != nil {
				c.log.WithError(err).Warn("the record of the certificate authority is damaged")
				continue
			}
			c.apply(r)
		}
		if batch.Snapshot {
			c.putRecord(ctx, store)
		}
	}
}

// apply follows a record as far as what is on this disk allows.
func (c *CA) apply(r record) {
	if err := c.activateNext(r); err != nil {
		c.log.WithError(err).Error("cannot apply a rotation of the certificate authority")
	}
	if err := c.dropFormer(r); err != nil {
		c.log.WithError(err).Error("cannot finish a rotation of the certificate authority")
	}
	c.mu.Lock()
	c.record, c.problem = r, ""
	if r.Hash != c.bundle.hash() {
		c.problem = "this netmaster does not have the cluster's certificate authority " + r.Hash
	}
	problem := c.problem
	c.mu.Unlock()
	c.changed.Broadcast()
	if problem != "" {
		c.log.WithField("hash", c.Hash()).Warn(problem + "; asking the other netmasters for it. " +
			"If they do not have it, this netmaster was started as the first of another cluster: stop it, " +
			"remove its TLS folder, and start it with --join and --cluster-secret-file")
	}
}

// activateNext ends a rotation that was interrupted when the store knew of it.
func (c *CA) activateNext(r record) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	next, err := readBundle(c.cfg.Dir, nextFile)
	if errs.Is(err, errs.NotFound) || err == nil && (next.Epoch != r.Epoch || next.hash() != r.Hash) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.activate(next)
}

// putRecord makes the record if there is none, or if this netmaster's disk is ahead of a
// store that has been restored.
func (c *CA) putRecord(ctx context.Context, store objdb.Store) {
	now, err := getRecord[record](ctx, store, recordKey)
	b := c.current()
	if err != nil || now.exists && now.value.Epoch >= b.Epoch {
		return
	}
	put, err := putRecord(recordKey, record{Epoch: b.Epoch, Hash: b.hash()})
	if err == nil {
		_, err = store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{now.unchanged()}, Then: []objdb.Op{put}})
	}
	if err != nil && !errors.Is(err, objdb.ErrCompareFailed) && ctx.Err() == nil {
		c.log.WithError(err).Warn("cannot record the certificate authority in the store")
	}
}

// keepInStep gets the authority from other netmasters when theirs is newer, until ctx ends.
func (c *CA) keepInStep(ctx context.Context) {
	client := peerClient(c.creds)
	defer client.CloseIdleConnections()
	pauses := retry.New(100*time.Millisecond, 5*time.Second)
	for {
		changed := c.changed.Next()
		if !c.behind() {
			pauses.Reset()
			wait := time.NewTimer(askEvery)
			select {
			case <-ctx.Done():
			case <-changed:
			case <-wait.C:
				c.askPeers(ctx, client)
			}
			wait.Stop()
		} else {
			c.askPeers(ctx, client)
			if c.behind() {
				pauses.Wait(ctx)
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// behind reports whether the store tells of another authority than this netmaster has.
func (c *CA) behind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record.Epoch > 0 && c.record.Hash != c.bundle.hash()
}

func (c *CA) askPeers(ctx context.Context, client *http.Client) {
	c.mu.Lock()
	masters := c.masters
	c.mu.Unlock()
	for _, peer := range masters {
		var raw json.RawMessage
		_, err := securityapi.Call(ctx, client, http.MethodGet, "https://"+peer+securityapi.PathMasterKeys, nil, &raw)
		var b bundle
		if err == nil {
			b, err = parseBundle(raw)
		}
		if err == nil {
			err = c.adopt(b)
		}
		if err != nil && ctx.Err() == nil {
			c.log.WithError(err).WithField("netmaster", peer).Debug("cannot compare the certificate authority with another netmaster's")
		}
	}
	c.mu.Lock()
	r := c.record
	c.mu.Unlock()
	if r.Hash == c.Hash() {
		c.apply(r)
	}
}

// publish keeps the record of this netmaster's own certificate current, until ctx ends.
func (c *CA) publish(ctx context.Context, store objdb.Store) {
	if c.cfg.OwnPKI != nil {
		return
	}
	pauses := retry.New(time.Second, time.Minute)
	for {
		changed := c.creds.Changed()
		err := c.publishOwn(ctx, store)
		if err == nil {
			pauses.Reset()
			select {
			case <-ctx.Done():
				return
			case <-changed:
				continue
			}
		}
		c.log.WithError(err).Debug("cannot record the certificate of this netmaster; retrying")
		if !pauses.Wait(ctx) {
			return
		}
	}
}

func (c *CA) publishOwn(ctx context.Context, store objdb.Store) error {
	leaf, b := c.creds.Leaf(), c.current()
	rec := hostRecord{
		Unit: pki.UnitMaster, Joined: "netmaster", Issued: pki.IssuedAt(leaf).UTC(), Expires: leaf.NotAfter.UTC(),
	}
	// A former authority's certificate is told by not being of the current one.
	if leaf.CheckSignatureFrom(b.authority.Cert) == nil {
		rec.Authority = b.hash()
	}
	now, err := getRecord[hostRecord](ctx, store, hostRoot+c.cfg.Name)
	if err != nil || now.exists && now.value == rec {
		return err
	}
	put, err := putRecord(now.kv.Key, rec)
	if err != nil {
		return err
	}
	_, err = store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{now.unchanged()}, Then: []objdb.Op{put}})
	return err
}
