package aci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/delta"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
	"github.com/contiv/netplugin/utils/signal"
)

// sentRoot holds, by app profile, what the gateway was told last.
const sentRoot = state.OperRoot + "netmaster/aci/"

// Source is what profiles there are to be.
type Source interface {
	// FabricProfiles returns the profiles the gateway is to have, by the app profile's key.
	FabricProfiles() map[string]Profile
	// Changed returns a channel that is closed when there may be others.
	Changed() <-chan struct{}
}

// Gateway is what a Fabric drives; see Client.
type Gateway interface {
	Create(ctx context.Context, p Profile) error
	Delete(ctx context.Context, tenant, name string) error
}

// Config is what a Fabric needs besides its source.
type Config struct {
	Log     logrus.FieldLogger
	Store   objdb.Store
	Fence   objdb.Cmp // holds while this netmaster leads
	Gateway Gateway
	// Announce has the hosts tell the fabric where the endpoints of a group are.
	Announce func(ctx context.Context, group int)

	AfterCreate time.Duration // from a profile's creation to the announcements; 0 means 2 s
	AfterDelete time.Duration // from a profile's end to its creation; 0 means 1 s
	RetryMin    time.Duration // first pause after a failure, doubled up to RetryMax; 0 means 1 s
	RetryMax    time.Duration // 0 means 1 min
}

func (c *Config) defaults() {
	for d, v := range map[*time.Duration]time.Duration{
		&c.AfterCreate: 2 * time.Second, &c.AfterDelete: time.Second, &c.RetryMin: time.Second, &c.RetryMax: time.Minute,
	} {
		if *d == 0 {
			*d = v
		}
	}
}

// Fabric keeps the gateway's app profiles equal to those of a Source.
type Fabric struct {
	cfg      Config
	source   Source
	profiles *delta.Map[string, sent]

	kick    chan struct{} // asks for a pass
	stopped chan struct{} // closed when Run has returned

	mu           sync.Mutex
	begun, ended uint64           // passes over all differences
	next         signal.Signal    // broadcast when ended grows
	failed       map[string]error // of the last pass, by profile
}

// sent is a profile as the gateway has it. An empty digest stands for a profile that the
// gateway may have in any form, because an answer is missing.
type sent struct {
	Tenant string `json:"tenant"`
	Name   string `json:"app-prof"`
	Digest string `json:"digest"`

	profile *Profile // on the desired side
}

// New returns a Fabric that does nothing yet; see Run.
func New(cfg Config, source Source) *Fabric {
	cfg.defaults()
	same := func(want, have sent) bool { return want.Digest == have.Digest }
	return &Fabric{
		cfg: cfg, source: source, profiles: delta.New[string](same),
		kick: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
}

// Run drives the gateway until ctx ends.
func (f *Fabric) Run(ctx context.Context) {
	defer close(f.stopped)
	var announcing sync.WaitGroup
	defer announcing.Wait()
	pauses := retry.New(f.cfg.RetryMin, f.cfg.RetryMax)
	for f.recall(ctx) != nil {
		if !pauses.Wait(ctx) {
			return
		}
	}
	pauses.Reset()
	for ctx.Err() == nil {
		changed := f.source.Changed()
		again := f.pass(ctx, &announcing)
		var due <-chan time.Time
		if again {
			due = time.After(pauses.Next())
		} else {
			pauses.Reset()
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-f.kick:
		case <-due:
		}
	}
}

// Settle waits until everything that is wanted now has been tried once, and returns why
// one of the given profiles could not be settled.
func (f *Fabric) Settle(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	f.mu.Lock()
	mine := f.begun + 1
	f.mu.Unlock()
	select {
	case f.kick <- struct{}{}:
	default: // a pass is about to begin
	}
	for {
		f.mu.Lock()
		ended, next, err := f.ended, f.next.Next(), f.firstFailure(keys)
		f.mu.Unlock()
		if ended >= mine {
			return err
		}
		select {
		case <-next:
		case <-f.stopped:
			return errNotLeader()
		case <-ctx.Done():
			return errs.New(errs.Timeout, "the ACI gateway did not answer in time; the update will be retried: %w", context.Cause(ctx))
		}
	}
}

// firstFailure is why one of the profiles could not be settled by the last pass.
func (f *Fabric) firstFailure(keys []string) error {
	for _, key := range keys {
		if err := f.failed[key]; err != nil {
			return err
		}
	}
	return nil
}

func errNotLeader() error {
	return errs.New(errs.Unavailable, "not the leader any more, retry the request")
}

// recall reads what the gateway was told by earlier leaders.
func (f *Fabric) recall(ctx context.Context) error {
	kvs, _, err := f.cfg.Store.List(ctx, sentRoot)
	if err != nil {
		f.cfg.Log.WithError(err).Warn("cannot read what was last sent to the ACI gateway; retrying")
		return err
	}
	for _, kv := range kvs {
		var s sent
		key := strings.TrimPrefix(kv.Key, sentRoot)
		if err := json.Unmarshal(kv.Value, &s); err != nil {
			tenant, name, _ := strings.Cut(key, ":")
			s = sent{Tenant: tenant, Name: name}
		}
		f.profiles.SetActual(key, s)
	}
	return nil
}

// pass tries to settle every difference once and reports whether any is left.
func (f *Fabric) pass(ctx context.Context, announcing *sync.WaitGroup) bool {
	f.mu.Lock()
	f.begun++
	f.mu.Unlock()
	want := map[string]sent{}
	for key, p := range f.source.FabricProfiles() {
		want[key] = sent{Tenant: p.Tenant, Name: p.Name, Digest: p.digest(), profile: &p}
	}
	f.profiles.ReplaceDesired(want)
	failed := map[string]error{}
	pending := map[string]delta.Change[string, sent]{}
	for c := range f.profiles.Pending() {
		pending[c.Key] = c
	}
	for _, key := range slices.Sorted(maps.Keys(pending)) {
		c := pending[key]
		err := f.apply(ctx, c)
		log := f.cfg.Log.WithFields(logrus.Fields{"appProfile": key, "change": c.Op.String()})
		if err != nil {
			failed[key] = err
			log.WithError(err).Warn("cannot update an app profile on the ACI gateway; retrying")
			continue
		}
		f.profiles.Applied(c)
		log.Info("app profile updated on the ACI gateway")
		if c.Want.profile != nil && f.cfg.Announce != nil {
			announcing.Go(func() { f.announce(ctx, c.Want.profile.Numbers) })
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed, f.ended = failed, f.begun
	f.next.Broadcast()
	return len(failed) > 0
}

// apply carries one difference to the gateway.
func (f *Fabric) apply(ctx context.Context, c delta.Change[string, sent]) error {
	if c.Op == delta.Remove {
		return f.remove(ctx, c)
	}
	// Until its answer is here the gateway may have anything.
	unsure := sent{Tenant: c.Want.Tenant, Name: c.Want.Name}
	if err := f.note(ctx, c.Key, unsure); err != nil {
		return err
	}
	f.profiles.SetActual(c.Key, unsure)
	if c.Op == delta.Update {
		// A gateway that refuses may not have had the profile; creating it will tell.
		if err := f.cfg.Gateway.Delete(ctx, c.Want.Tenant, c.Want.Name); errs.Is(err, errs.Unavailable) {
			return err
		} else if err != nil {
			f.cfg.Log.WithField("appProfile", c.Key).WithError(err).Info("the ACI gateway did not delete the previous app profile")
		}
		if !retry.Pause(ctx, f.cfg.AfterDelete) {
			return context.Cause(ctx)
		}
	}
	if err := f.cfg.Gateway.Create(ctx, *c.Want.profile); err != nil {
		return err
	}
	return f.note(ctx, c.Key, c.Want)
}

// remove takes a profile down, again and again if need be. Only of one that the gateway
// may never have had a refusal is believed.
func (f *Fabric) remove(ctx context.Context, c delta.Change[string, sent]) error {
	if err := f.note(ctx, c.Key, c.Have); err != nil { // a former leader must not take down what the next one makes
		return err
	}
	err := f.cfg.Gateway.Delete(ctx, c.Have.Tenant, c.Have.Name)
	if err != nil && (c.Have.Digest != "" || errs.Is(err, errs.Unavailable)) {
		return err
	}
	return f.commit(ctx, objdb.Delete(sentRoot+c.Key))
}

func (f *Fabric) note(ctx context.Context, key string, s sent) error {
	text, err := json.Marshal(s)
	if err != nil {
		return errs.Wrap(errs.Internal, err)
	}
	return f.commit(ctx, objdb.Put(sentRoot+key, text))
}

func (f *Fabric) commit(ctx context.Context, op objdb.Op) error {
	_, err := f.cfg.Store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{f.cfg.Fence}, Then: []objdb.Op{op}})
	if errors.Is(err, objdb.ErrCompareFailed) {
		return errNotLeader()
	}
	if err != nil {
		return fmt.Errorf("note what the ACI gateway is told: %w", err)
	}
	return nil
}

// announce gives the fabric time to build a profile before its endpoints speak up.
func (f *Fabric) announce(ctx context.Context, groups []int) {
	if !retry.Pause(ctx, f.cfg.AfterCreate) {
		return
	}
	for _, g := range groups {
		f.cfg.Announce(ctx, g)
	}
}
