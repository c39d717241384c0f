package auth

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

// appliedWithin is how long an answer waits until this netmaster knows of its own write.
const appliedWithin = 5 * time.Second

// Service knows the users of a cluster. Safe for concurrent use.
type Service struct {
	cfg     Config
	keys    *keyring
	dir     *directory
	hasher  *hasher
	limiter *limiter
	reviews *reviews
	oidc    *providers
	handler http.Handler

	verified verified
}

// New makes a Service. It knows nobody until Run has read the store.
func New(cfg Config) (*Service, error) {
	if cfg.Store == nil || cfg.Keys == nil || cfg.Log == nil {
		return nil, errs.New(errs.Invalid, "auth: Store, Keys and Log are required")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	keys := &keyring{keys: cfg.Keys}
	s := &Service{
		cfg: cfg, keys: keys, dir: newDirectory(keys, cfg.Log), hasher: newHasher(cfg.Hash), limiter: newLimiter(cfg.Now),
		reviews: newReviews(cfg.Reviewer, cfg.Now), oidc: newProviders(),
	}
	s.handler = s.routes()
	return s, nil
}

// Handler serves what is below Prefix. Who asks is in the request's context (package
// identity); a login, GET version/ and GET health/ need nobody.
func (s *Service) Handler() http.Handler { return s.handler }

// Run mirrors the records of the store until ctx ends. Keys must be there by then: a record
// whose key comes later is read with the next snapshot of the watch.
func (s *Service) Run(ctx context.Context, store objdb.Store) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.removeOutdated(ctx, store) })
	if s.cfg.Bootstrap {
		wg.Go(func() { s.bootstrap(ctx, store) })
	}
	announced := true // as far as is known
	for b := range store.Watch(ctx, state.AuthRoot) {
		s.dir.apply(b)
		if admin, ok := s.dir.user(builtInAdmin); ok && announced != admin.Initial {
			if announced = admin.Initial; !announced && s.cfg.Forget != nil {
				s.cfg.Forget()
			}
		}
	}
}

// Changed returns a channel that is closed when anything about users changes: who keeps an
// answer open then authenticates its request again.
func (s *Service) Changed() <-chan struct{} { return s.dir.changed.Next() }

// bootstrap makes the built-in users, unless they are there.
func (s *Service) bootstrap(ctx context.Context, store objdb.Store) {
	pauses := retry.New(100*time.Millisecond, 10*time.Second)
	for ctx.Err() == nil {
		err := s.makeBuiltIn(ctx, store)
		if err == nil {
			return
		}
		s.cfg.Log.WithError(err).Warn("cannot create the built-in users; retrying")
		retry.Pause(ctx, pauses.Next())
	}
}

func (s *Service) makeBuiltIn(ctx context.Context, store objdb.Store) error {
	if _, err := store.Get(ctx, userRoot+builtInAdmin); !errs.Is(err, errs.NotFound) {
		return err
	}
	admin, ops := newUser(builtInAdmin), newUser(builtInOps)
	admin.BuiltIn, ops.BuiltIn, ops.Disabled = true, true, true
	password := ""
	if s.cfg.Announce != nil {
		password = newPassword()
		hash, err := s.hasher.hash(ctx, password)
		if err != nil {
			return err
		}
		admin.Password, admin.Initial = hash, true
	}
	role := newAuthorization(authorization{Principal: admin.Name, Local: true, UserID: admin.ID, Role: "admin"})
	txn := objdb.Txn{If: []objdb.Cmp{objdb.Absent(userRoot + admin.Name)}}
	for key, record := range map[string]any{userRoot + admin.Name: admin, userRoot + ops.Name: ops, grantRoot + role.UUID: role} {
		value, err := s.keys.encode(key, record)
		if err != nil {
			return err
		}
		txn.Then = append(txn.Then, objdb.Put(key, value))
	}
	_, err := store.Commit(ctx, txn)
	switch {
	case errs.Is(err, errs.Conflict):
		return nil // another netmaster was first
	case err != nil:
		return err
	case s.cfg.Announce != nil:
		s.cfg.Announce(builtInAdmin, password)
	}
	s.cfg.Log.WithField("user", builtInAdmin).Info("created the built-in users; as root on this host, set a password with: netctl user passwd admin")
	return nil
}

// removeOutdated removes records of tokens that have expired, until ctx ends.
func (s *Service) removeOutdated(ctx context.Context, store objdb.Store) {
	for ctx.Err() == nil {
		_, changed := s.dir.at()
		ids, next := s.dir.outdated(s.cfg.Now())
		if len(ids) > 0 {
			txn := objdb.Txn{}
			for _, id := range ids[:min(len(ids), store.MaxOps())] {
				txn.Then = append(txn.Then, objdb.Delete(tokenRoot+id))
			}
			if _, err := store.Commit(ctx, txn); err != nil {
				s.cfg.Log.WithError(err).Debug("cannot remove records of expired tokens yet")
				retry.Pause(ctx, time.Minute)
				continue
			}
		}
		wait := 24 * time.Hour
		if !next.IsZero() {
			wait = max(next.Sub(s.cfg.Now()), time.Second)
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}
