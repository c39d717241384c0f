package ca

import (
	"context"
	"encoding/json"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

const hostRoot = state.AuthRoot + "hosts/"

// hostRecord says who has a certificate: the latest one. Name is the rest of its key.
type hostRecord struct {
	Unit      pki.Unit  `json:"unit"`
	Joined    string    `json:"joined"` // how: "token 12ab", "kubernetes", "socket", "ca issue", "netmaster"
	Issued    time.Time `json:"issued,omitzero"`
	Expires   time.Time `json:"expires,omitzero"`
	Authority string    `json:"authority"` // SPKI hash
	// Revoked: no certificate of this name counts, and only a join token that was made
	// afterwards gives another one.
	Revoked bool `json:"revoked,omitempty"`
	// RevokedUntil revokes all certificates that were issued up to then.
	RevokedUntil time.Time `json:"revokedUntil,omitzero"`
}

func (r hostRecord) state(now time.Time) string {
	switch {
	case r.Revoked:
		return securityapi.HostRevoked
	case now.After(r.Expires):
		return securityapi.HostExpired
	}
	return securityapi.HostValid
}

// hostName is what a certificate may be made for: a host label.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?$`)

func checkName(name string) error {
	if !hostName.MatchString(name) {
		return errs.New(errs.Invalid, "host label %.80q: expected letters, digits, '.', '_', ':' and '-', at most 253", name)
	}
	return nil
}

// stored is a record as it stands in the store.
type storedRecord[T any] struct {
	kv     objdb.KV // Key is set in any case
	exists bool
	value  T
}

// unchanged is the comparison that holds until somebody else changes the record.
func (s storedRecord[T]) unchanged() objdb.Cmp {
	if s.exists {
		return objdb.Unchanged(s.kv)
	}
	return objdb.Absent(s.kv.Key)
}

func getRecord[T any](ctx context.Context, store objdb.Store, key string) (storedRecord[T], error) {
	out := storedRecord[T]{kv: objdb.KV{Key: key}}
	kv, err := store.Get(ctx, key)
	if errs.Is(err, errs.NotFound) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(kv.Value, &out.value); err != nil {
		return out, errs.New(errs.Internal, "record %s is damaged: %w", key, err)
	}
	out.kv, out.exists = kv, true
	return out, nil
}

func putRecord(key string, value any) (objdb.Op, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return objdb.Op{}, errs.New(errs.Internal, "encode record %s: %w", key, err)
	}
	return objdb.Put(key, text), nil
}

// certRequest asks for a certificate for a host.
type certRequest struct {
	name   string
	unit   pki.Unit
	csr    []byte
	joined string // empty: as it was
	ttl    time.Duration
	// allowed says why not, or what the transaction has to compare and do as well.
	allowed func(ctx context.Context, store objdb.Store, host storedRecord[hostRecord]) (objdb.Txn, error)
}

// certify makes a certificate, and its record before it is given away.
func (c *CA) certify(ctx context.Context, r certRequest) (securityapi.Certificate, error) {
	store, err := c.openStore()
	if err != nil {
		return securityapi.Certificate{}, err
	}
	if err := checkName(r.name); err != nil {
		return securityapi.Certificate{}, err
	}
	c.issuing.Lock()
	defer c.issuing.Unlock()
	var cert securityapi.Certificate
	err = repeat(ctx, func(ctx context.Context) (err error) { cert, err = c.tryCertify(ctx, store, r); return err })
	return cert, err
}

func (c *CA) tryCertify(ctx context.Context, store objdb.Store, r certRequest) (securityapi.Certificate, error) {
	none := securityapi.Certificate{}
	host, err := getRecord[hostRecord](ctx, store, hostRoot+r.name)
	if err != nil {
		return none, err
	}
	now, rec := time.Now(), host.value
	if host.exists && rec.Unit != r.unit && rec.state(now) != securityapi.HostExpired {
		return none, refuse(forbidden, "%s is the name of a %s already", r.name, rec.Unit)
	}
	txn, err := r.allowed(ctx, store, host)
	if err != nil {
		return none, err
	}
	b := c.current()
	if b.authority == nil {
		return none, refuse(notFound, "this cluster has its own certificates (--tls-ca): make one for %s there", r.name)
	}
	if !now.After(rec.RevokedUntil) { // the clock that revoked was ahead
		now = rec.RevokedUntil.Add(time.Millisecond)
	}
	text, err := b.authority.Sign(r.csr, pki.Subject{Name: r.name, Unit: r.unit, Valid: r.ttl}, now)
	if err != nil {
		return none, err
	}
	certs, err := pki.ParseCertificates(text)
	if err != nil {
		return none, err
	}
	rec.Unit, rec.Issued, rec.Expires = r.unit, pki.IssuedAt(certs[0]).UTC(), certs[0].NotAfter.UTC()
	rec.Authority, rec.Revoked = b.hash(), false
	if r.joined != "" {
		rec.Joined = r.joined
	}
	put, err := putRecord(host.kv.Key, rec)
	if err != nil {
		return none, err
	}
	txn.If, txn.Then = append(txn.If, host.unchanged()), append(txn.Then, put)
	if _, err := store.Commit(ctx, txn); err != nil {
		return none, err
	}
	return securityapi.Certificate{Certificate: string(b.chain(text)), Roots: string(b.roots()), Active: b.hash()}, nil
}

// revoke makes all certificates of a name void, at every netmaster that reads the store.
func (c *CA) revoke(ctx context.Context, name string) error {
	store, err := c.openStore()
	if err != nil {
		return err
	}
	return repeat(ctx, func(ctx context.Context) error { return c.tryRevoke(ctx, store, name) })
}

func (c *CA) tryRevoke(ctx context.Context, store objdb.Store, name string) error {
	host, err := getRecord[hostRecord](ctx, store, hostRoot+name)
	if err != nil {
		return err
	}
	if !host.exists {
		return refuse(notFound, "no certificate has been issued for %q; see: netctl host ls", name)
	}
	if host.value.Unit == pki.UnitMaster {
		return refuse(conflict, "%s is a netmaster, which has the key of the authority: remove it, give the others "+
			"another --cluster-secret-file, and run: netctl ca rotate", name)
	}
	// Certificates are told by their millisecond, so that of the last one is over.
	host.value.Revoked, host.value.RevokedUntil = true, later(time.Now(), host.value.Issued).UTC()
	put, err := putRecord(host.kv.Key, host.value)
	if err != nil {
		return err
	}
	if _, err := store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{host.unchanged()}, Then: []objdb.Op{put}}); err != nil {
		return err
	}
	c.noteRevoked(name, host.value)
	c.log.WithField("host", name).Info("certificates revoked")
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// hosts lists who has a certificate, sorted by name.
func (c *CA) hosts(ctx context.Context) ([]securityapi.Host, error) {
	store, err := c.openStore()
	if err != nil {
		return nil, err
	}
	kvs, _, err := store.List(ctx, hostRoot)
	if err != nil {
		return nil, err
	}
	out, now := make([]securityapi.Host, 0, len(kvs)), time.Now()
	for _, kv := range kvs {
		var r hostRecord
		if err := json.Unmarshal(kv.Value, &r); err != nil {
			c.log.WithError(err).WithField("key", kv.Key).Warn("the record of a certificate is damaged")
			continue
		}
		out = append(out, securityapi.Host{
			Name: strings.TrimPrefix(kv.Key, hostRoot), Unit: string(r.Unit), State: r.state(now), Joined: r.Joined,
			Issued: r.Issued, Expires: r.Expires, Authority: r.Authority,
		})
	}
	return out, nil
}

// followHosts applies revocations until ctx ends.
func (c *CA) followHosts(ctx context.Context, store objdb.Store) {
	mirror := objdb.Mirror[hostRecord]{
		Prefix: hostRoot,
		// A record that goes does not make revoked certificates count again: a store that has
		// lost something must not give rights.
		Changed: func(ch objdb.Change[hostRecord]) {
			if ch.Is {
				c.noteRevoked(ch.ID, ch.New)
			}
		},
		Unreadable: func(key string, err error) {
			c.log.WithError(err).WithField("key", key).Warn("the record of a certificate is damaged")
		},
	}
	for batch := range store.Watch(ctx, hostRoot) {
		mirror.Apply(batch)
		c.noteMasters(mirror.All())
	}
}

// noteMasters keeps the addresses of the other netmasters: their names. Whoever answers there
// has to show a netmaster's certificate.
func (c *CA) noteMasters(hosts iter.Seq2[string, hostRecord]) {
	var masters []string
	for name, r := range hosts {
		if r.Unit == pki.UnitMaster && name != c.cfg.Name && r.state(time.Now()) == securityapi.HostValid {
			masters = append(masters, name)
		}
	}
	slices.Sort(masters)
	c.mu.Lock()
	c.masters = masters
	c.mu.Unlock()
}

// noteRevoked makes certificates void here.
func (c *CA) noteRevoked(name string, r hostRecord) {
	if r.RevokedUntil.IsZero() {
		return
	}
	c.mu.Lock()
	fresh := r.RevokedUntil.After(c.revoked[name])
	if fresh {
		c.revoked[name] = r.RevokedUntil
	}
	c.mu.Unlock()
	if fresh {
		c.creds.SetRevoked(c.isRevoked)
	}
}

// waiting returns who has no certificate of the bundle's authority yet, and when the last
// one was made. Netmasters that have to hold on to theirs wait for the hosts.
func waiting(hosts []securityapi.Host, b bundle) (names []string, since time.Time) {
	for _, h := range hosts {
		if h.State != securityapi.HostValid || b.Cross == "" && h.Unit == string(pki.UnitMaster) {
			continue
		}
		if h.Authority != b.hash() {
			names = append(names, h.Name)
		}
		since = later(since, h.Issued)
	}
	return names, since
}
