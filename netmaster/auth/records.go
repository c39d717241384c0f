package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// Where the records are.
const (
	userRoot      = state.AuthRoot + "users/"
	grantRoot     = state.AuthRoot + "authorizations/"
	tokenRoot     = state.AuthRoot + "tokens/"
	ldapKey       = state.AuthRoot + "ldap"
	oidcKey       = state.AuthRoot + "oidc"
	maxRecord     = 256 << 10 // bytes
	recordPurpose = "contiv auth record"
)

// The built-in users; they cannot be deleted.
const (
	builtInAdmin = "admin"
	builtInOps   = "ops"
)

// user is a local user.
type user struct {
	ID        string `json:"id"` // random: a user of the same name later is another one
	Name      string `json:"username"`
	Password  string `json:"password,omitempty"` // PHC string; empty: none, nobody can log in
	FirstName string `json:"first_name,omitempty"`
	LastName  string `json:"last_name,omitempty"`
	Disabled  bool   `json:"disable,omitempty"`
	BuiltIn   bool   `json:"built_in,omitempty"`
	Initial   bool   `json:"initial,omitempty"` // the password is the first one, which was announced
	// Session is in the login tokens of the user; another value ends them.
	Session string `json:"session"`
}

// authorization gives a role to a principal.
type authorization struct {
	UUID      string        `json:"uuid"`
	Principal string        `json:"principal"`
	Local     bool          `json:"local"`
	UserID    string        `json:"user_id,omitempty"` // with Local: the user's ID
	Role      identity.Role `json:"role"`
	Tenant    string        `json:"tenant,omitempty"`
}

func (a authorization) grant() identity.Grant { return identity.Grant{Role: a.Role, Tenant: a.Tenant} }

// The kinds of token records.
const (
	serviceToken = "service"
	endedLogin   = "ended" // logged out before its time
)

// token is a service token, or a login token that does not count any more.
type token struct {
	Kind    string         `json:"kind"`
	Name    string         `json:"name,omitempty"`
	Hash    string         `json:"hash,omitempty"` // SHA-256 of the secret, hex
	Grant   identity.Grant `json:"grant"`
	Creator string         `json:"creator,omitempty"`
	UserID  string         `json:"user_id,omitempty"` // of the creator, if that is a local user
	Created time.Time      `json:"created"`
	Expires time.Time      `json:"expires"`
}

// envelope is how a record is stored. Its MAC is made with a key that only netmasters have,
// so that who can write the store can remove users, but not make any.
type envelope struct {
	KeyID  string          `json:"key_id"`
	MAC    string          `json:"mac"` // HMAC-SHA256 of the store's key, a zero byte, and Record
	Record json.RawMessage `json:"record"`
}

// encode makes the value to store below key.
func (k *keyring) encode(key string, record any) ([]byte, error) {
	text, err := json.Marshal(record)
	if err != nil {
		return nil, errs.New(errs.Internal, "encode the record %s: %w", key, err)
	}
	newest, err := k.newest()
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{KeyID: newest.id, MAC: mac(newest, key, text), Record: text})
}

// decode reads what encode has made. The error's kind is Invalid.
func decode[T any](k *keyring, key string, value []byte) (record T, err error) {
	var e envelope
	if len(value) > maxRecord {
		return record, errs.New(errs.Invalid, "the record has %d bytes, at most %d are allowed", len(value), maxRecord)
	}
	if err := json.Unmarshal(value, &e); err != nil {
		return record, errs.Wrap(errs.Invalid, err)
	}
	signer, ok := k.byID(e.KeyID)
	if !ok {
		return record, errs.New(errs.Invalid, "the record was made with the key %q, which this netmaster does not have", e.KeyID)
	}
	if !hmac.Equal([]byte(mac(signer, key, e.Record)), []byte(e.MAC)) {
		return record, errs.New(errs.Invalid, "the record was not written by a netmaster of this cluster")
	}
	if err := json.Unmarshal(e.Record, &record); err != nil {
		return record, errs.Wrap(errs.Invalid, err)
	}
	return record, nil
}

func mac(k derived, key string, text []byte) string {
	h := hmac.New(sha256.New, k.records)
	h.Write([]byte(key))
	h.Write([]byte{0})
	h.Write(text)
	return base64.RawStdEncoding.EncodeToString(h.Sum(nil))
}

// randomHex returns n random bytes in hex.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
