package ca

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

const (
	joinRoot    = state.AuthRoot + "join/"
	tokenPrefix = "CONTIV1"
)

// Bounds of a join token.
const (
	tokenTTL    = 24 * time.Hour
	maxTokenTTL = 366 * 24 * time.Hour
	maxUses     = 1000
	maxTokens   = 10000
)

// tokenRecord is a join token as the store has it. Its id is the rest of its key.
type tokenRecord struct {
	Hash    string    `json:"hash"` // SHA-256 of the secret, in hex
	Unit    pki.Unit  `json:"unit"`
	Host    string    `json:"host,omitempty"` // the only label that it is for
	Left    int       `json:"left"`
	Expires time.Time `json:"expires"`
	// Used is what it has been used for: who has lost the answer may ask for it again.
	Used []tokenUse `json:"used,omitempty"`
}

// tokenUse is a certificate that a token has given: for whom, and for which public key.
type tokenUse struct {
	Host string `json:"host"`
	Key  string `json:"key"` // SHA-256 of the SubjectPublicKeyInfo, in hex
}

func secretHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// createToken makes a join token. Its secret is in the answer and nowhere else.
func (c *CA) createToken(ctx context.Context, req securityapi.TokenRequest) (securityapi.Token, error) {
	none := securityapi.Token{}
	store, err := c.openStore()
	if err != nil {
		return none, err
	}
	rec, err := newTokenRecord(req, time.Now())
	if err != nil {
		return none, err
	}
	hash := c.Hash()
	if hash == "" {
		return none, refuse(notFound, "this cluster has its own certificates (--tls-ca): hosts need no join token")
	}
	if err := c.removeExpired(ctx, store); err != nil {
		return none, err
	}
	id, err := randomHex(6)
	if err != nil {
		return none, err
	}
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		return none, errs.New(errs.Internal, "make a secret: %w", err)
	}
	secret := base64.RawURLEncoding.EncodeToString(raw)
	rec.Hash = secretHash(secret)
	put, err := putRecord(joinRoot+id, rec)
	if err != nil {
		return none, err
	}
	if _, err := store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{objdb.Absent(joinRoot + id)}, Then: []objdb.Op{put}}); err != nil {
		return none, err
	}
	t := rec.show(id)
	t.Token = strings.Join([]string{tokenPrefix, hash, id, secret}, ".")
	return t, nil
}

func newTokenRecord(req securityapi.TokenRequest, now time.Time) (tokenRecord, error) {
	ttl := tokenTTL
	if req.TTL != "" {
		var err error
		if ttl, err = time.ParseDuration(req.TTL); err != nil || ttl <= 0 || ttl > maxTokenTTL {
			return tokenRecord{}, errs.New(errs.Invalid, "ttl %.40q: expected a duration such as 24h, at most %s", req.TTL, maxTokenTTL)
		}
	}
	if req.Uses == 0 {
		req.Uses = 1
	}
	if req.Uses < 1 || req.Uses > maxUses {
		return tokenRecord{}, errs.New(errs.Invalid, "uses %d: expected 1 to %d", req.Uses, maxUses)
	}
	if req.Host != "" {
		if err := checkName(req.Host); err != nil {
			return tokenRecord{}, err
		}
	}
	unit := pki.UnitAgent
	if req.Monitor {
		unit = pki.UnitMonitor
	}
	return tokenRecord{Unit: unit, Host: req.Host, Left: req.Uses, Expires: now.Add(ttl).UTC().Truncate(time.Second)}, nil
}

func (r tokenRecord) show(id string) securityapi.Token {
	return securityapi.Token{ID: id, Unit: string(r.Unit), Host: r.Host, Left: r.Left, Expires: r.Expires}
}

// tokens lists the join tokens that can still be used.
func (c *CA) tokens(ctx context.Context) ([]securityapi.Token, error) {
	store, err := c.openStore()
	if err != nil {
		return nil, err
	}
	kvs, _, err := store.List(ctx, joinRoot)
	if err != nil {
		return nil, err
	}
	out := []securityapi.Token{}
	for _, kv := range kvs {
		var r tokenRecord
		if json.Unmarshal(kv.Value, &r) == nil && r.Left > 0 && time.Now().Before(r.Expires) {
			out = append(out, r.show(strings.TrimPrefix(kv.Key, joinRoot)))
		}
	}
	return out, nil
}

func (c *CA) removeToken(ctx context.Context, id string) error {
	store, err := c.openStore()
	if err != nil {
		return err
	}
	rec, err := getRecord[tokenRecord](ctx, store, joinRoot+id)
	if err != nil {
		return err
	}
	if !rec.exists {
		return refuse(notFound, "there is no join token %q; see: netctl host token ls", id)
	}
	_, err = store.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Delete(joinRoot + id)}})
	return err
}

// removeExpired removes the records of tokens that are over. The error's kind is Exhausted
// if too many are left.
func (c *CA) removeExpired(ctx context.Context, store objdb.Store) error {
	kvs, _, err := store.List(ctx, joinRoot)
	if err != nil {
		return err
	}
	left := len(kvs)
	for _, kv := range kvs {
		var r tokenRecord
		if json.Unmarshal(kv.Value, &r) == nil && time.Now().Before(r.Expires) {
			continue
		}
		if _, err := store.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Delete(kv.Key)}}); err != nil {
			return err
		}
		left--
	}
	if left >= maxTokens {
		return errs.New(errs.Exhausted, "there are %d join tokens, at most %d are allowed; remove some with: netctl host token rm", left, maxTokens)
	}
	return nil
}

// useToken takes one use of a token for a host, and returns what the transaction has to do.
// Who has lost the answer may ask again with the same key, as long as nothing else has given
// the host a certificate since.
func useToken(tok storedRecord[tokenRecord], host storedRecord[hostRecord], use tokenUse) (objdb.Txn, error) {
	t := tok.value
	if slices.Contains(t.Used, use) && !host.value.Revoked && host.value.Joined == t.joined(tok.kv.Key) {
		return objdb.Txn{If: []objdb.Cmp{tok.unchanged()}}, nil
	}
	if t.Left < 1 {
		return objdb.Txn{}, refuse(unauthorized, "the join token has been used; make another one with: netctl host token create")
	}
	known := host.exists && host.value.state(time.Now()) != securityapi.HostExpired
	if known && tok.kv.CreateRevision < host.kv.ModRevision {
		return objdb.Txn{}, refuse(forbidden, "%s has been given a certificate, or lost it, since the join token was made; "+
			"make another one with: netctl host token create --host %s", use.Host, use.Host)
	}
	t.Left--
	t.Used = append(slices.Clone(t.Used), use)
	put, err := putRecord(tok.kv.Key, t)
	return objdb.Txn{If: []objdb.Cmp{tok.unchanged()}, Then: []objdb.Op{put}}, err
}

// joined is how a host says that it has joined by a token.
func (tokenRecord) joined(key string) string { return "token " + strings.TrimPrefix(key, joinRoot) }

// checkToken finds the token of a request. Who does not know its secret learns nothing else.
func checkToken(ctx context.Context, store objdb.Store, req securityapi.JoinRequest) (storedRecord[tokenRecord], error) {
	tok := storedRecord[tokenRecord]{}
	unknown := refuse(unauthorized, "the join token is unknown; make another one with: netctl host token create")
	if checkName(req.ID) != nil {
		return tok, unknown
	}
	tok, err := getRecord[tokenRecord](ctx, store, joinRoot+req.ID)
	if err != nil {
		return tok, err
	}
	same := subtle.ConstantTimeCompare([]byte(secretHash(req.Secret)), []byte(tok.value.Hash)) == 1
	switch {
	case !same || !tok.exists:
		return tok, unknown
	case time.Now().After(tok.value.Expires):
		return tok, refuse(unauthorized, "the join token has expired at %s; make another one with: netctl host token create",
			tok.value.Expires.Format(time.RFC3339))
	case tok.value.Host != "" && tok.value.Host != req.Host:
		return tok, refuse(forbidden, "the join token is for host %s, not for %s", tok.value.Host, req.Host)
	}
	return tok, nil
}
