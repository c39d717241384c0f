package auth

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/signal"
)

// keepEnded is how long records of tokens are kept after their time, for netmasters whose
// clocks are behind.
const keepEnded = time.Hour

// directory is what this netmaster knows of the records in the store.
type directory struct {
	mu       sync.RWMutex
	revision int64 // of the last batch; 0: nothing has been read
	users    objdb.Mirror[user]
	grants   objdb.Mirror[authorization]
	tokens   objdb.Mirror[token]
	ldap     objdb.Mirror[ldapConfig]
	oidc     objdb.Mirror[oidcConfig]
	changed  signal.Signal
}

func newDirectory(keys *keyring, log logrus.FieldLogger) *directory {
	d := &directory{}
	d.users = mirror[user](keys, log, userRoot)
	d.grants = mirror[authorization](keys, log, grantRoot)
	d.tokens = mirror[token](keys, log, tokenRoot)
	d.ldap = mirror[ldapConfig](keys, log, ldapKey)
	d.oidc = mirror[oidcConfig](keys, log, oidcKey)
	return d
}

// mirror makes a mirror of records that netmasters of this cluster have written below that key.
func mirror[T any](keys *keyring, log logrus.FieldLogger, prefix string) objdb.Mirror[T] {
	return objdb.Mirror[T]{
		Prefix:    prefix,
		DecodeKey: func(key string, value []byte) (T, error) { return decode[T](keys, key, value) },
		Changed:   func(objdb.Change[T]) {},
		Unreadable: func(key string, err error) {
			log.WithField("key", key).WithError(err).Warn("ignoring a record of users that cannot be read")
		},
	}
}

// apply takes the next batch of the watch.
func (d *directory) apply(b objdb.Batch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users.Apply(b)
	d.grants.Apply(b)
	d.tokens.Apply(b)
	d.ldap.Apply(b)
	d.oidc.Apply(b)
	d.revision = max(b.Revision, 1)
	d.changed.Broadcast()
}

// at returns the revision that is known, and a channel that is closed when that changes.
func (d *directory) at() (int64, <-chan struct{}) {
	changed := d.changed.Next()
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.revision, changed
}

func (d *directory) user(name string) (user, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.users.Get(name)
}

func (d *directory) allUsers() []user {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return sorted(&d.users, func(u user) string { return u.Name })
}

func (d *directory) authorization(uuid string) (authorization, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.grants.Get(uuid)
}

func (d *directory) allAuthorizations() []authorization {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return sorted(&d.grants, func(a authorization) string { return a.Principal + " " + a.UUID })
}

func (d *directory) token(id string) (token, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.tokens.Get(id)
}

// serviceTokens returns the service tokens by their ids.
func (d *directory) serviceTokens() map[string]token {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all := maps.Collect(d.tokens.All())
	maps.DeleteFunc(all, func(_ string, t token) bool { return t.Kind != serviceToken })
	return all
}

func (d *directory) ldapConfig() (ldapConfig, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.ldap.Get("")
}

func (d *directory) oidcConfig() (oidcConfig, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.oidc.Get("")
}

// grantsOf returns what a local user may do.
func (d *directory) grantsOf(u user) []identity.Grant {
	return d.collect(func(a authorization) bool { return a.Local && a.Principal == u.Name && a.UserID == u.ID })
}

// grantsOfPrincipals returns what members of groups elsewhere may do.
func (d *directory) grantsOfPrincipals(principals []string) []identity.Grant {
	return d.collect(func(a authorization) bool { return !a.Local && slices.Contains(principals, a.Principal) })
}

func (d *directory) collect(counts func(authorization) bool) []identity.Grant {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var grants []identity.Grant
	for _, a := range d.grants.All() {
		if counts(a) && !slices.Contains(grants, a.grant()) {
			grants = append(grants, a.grant())
		}
	}
	slices.SortFunc(grants, func(a, b identity.Grant) int {
		return cmp.Or(strings.Compare(string(a.Role), string(b.Role)), strings.Compare(a.Tenant, b.Tenant))
	})
	return grants
}

// outdated returns the ids of token records that can be removed, and when the next one can.
func (d *directory) outdated(now time.Time) (ids []string, next time.Time) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for id, t := range d.tokens.All() {
		switch end := t.Expires.Add(keepEnded); {
		case !end.After(now):
			ids = append(ids, id)
		case next.IsZero() || end.Before(next):
			next = end
		}
	}
	slices.Sort(ids)
	return ids, next
}

func sorted[T any](m *objdb.Mirror[T], key func(T) string) []T {
	var all []T
	for _, v := range m.All() {
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	return all
}
