package ca

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/contiv/netplugin/netmaster/seal"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

// Files in the TLS folder, besides the certificate of the netmaster itself.
const (
	bundleFile = "ca.json"
	nextFile   = "ca-next.json" // a rotation that the store may know of or not
)

// keySize is the size of a master key, in bytes.
const keySize = 32

// bundle is what netmasters share. It is a value: a change makes another one with a higher
// epoch.
type bundle struct {
	Epoch int64 `json:"epoch"`
	// Cert and Key are those of the authority, in PEM; empty if the cluster has a public key
	// infrastructure of its own.
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
	// Cross is Cert signed by the former authority. A cluster that has lost that one's key
	// has no such certificate.
	Cross   string     `json:"cross,omitempty"`
	Former  string     `json:"former,omitempty"` // authorities that still count
	Rotated time.Time  `json:"rotated,omitzero"`
	Keys    []seal.Key `json:"keys"` // newest first

	authority *pki.Authority
}

// newBundle makes the first bundle of a cluster.
func newBundle(ownPKI bool, now time.Time) (bundle, error) {
	key, err := newKey()
	if err != nil {
		return bundle{}, err
	}
	b := bundle{Epoch: 1, Keys: []seal.Key{key}}
	if ownPKI {
		return b, nil
	}
	return b.withAuthority(now)
}

// withAuthority returns the bundle with a new authority.
func (b bundle) withAuthority(now time.Time) (bundle, error) {
	authority, err := pki.NewAuthority("contiv "+now.UTC().Format("2006-01-02 15:04:05.000"), now)
	if err != nil {
		return bundle{}, err
	}
	cert, key, err := authority.PEM()
	b.Cert, b.Key, b.authority = string(cert), string(key), authority
	return b, err
}

// next returns the bundle after a rotation.
func (b bundle) next(epoch int64, now time.Time) (bundle, error) {
	key, err := newKey()
	if err != nil {
		return bundle{}, err
	}
	n, err := b.withAuthority(now)
	if err != nil {
		return bundle{}, err
	}
	cross, err := b.authority.Cross(n.authority.Cert, now)
	if err != nil {
		return bundle{}, err
	}
	n.Cross, n.Former = string(pki.EncodeCertificates(cross)), b.Cert+b.Former
	n.Epoch, n.Rotated, n.Keys = epoch, now.UTC(), append([]seal.Key{key}, b.Keys...)
	return n, nil
}

// finished returns the bundle after a rotation has ended.
func (b bundle) finished() bundle {
	b.Former, b.Cross = "", ""
	return b
}

func (b bundle) hash() string {
	if b.authority == nil {
		return ""
	}
	return b.authority.Hash()
}

// roots are the authorities that count, in PEM.
func (b bundle) roots() []byte { return []byte(b.Cert + b.Former) }

// chain is a certificate with what is sent along.
func (b bundle) chain(cert []byte) []byte { return append(cert, b.Cross...) }

func newKey() (seal.Key, error) {
	secret := make([]byte, keySize)
	if _, err := rand.Read(secret); err != nil {
		return seal.Key{}, errs.New(errs.Internal, "make a key: %w", err)
	}
	id, err := randomHex(8)
	return seal.Key{ID: id, Secret: secret}, err
}

func randomHex(bytes int) (string, error) {
	b := make([]byte, bytes)
	if _, err := rand.Read(b); err != nil {
		return "", errs.New(errs.Internal, "make a random name: %w", err)
	}
	return hex.EncodeToString(b), nil
}

// parseBundle reads a bundle. The error's kind is Invalid.
func parseBundle(text []byte) (bundle, error) {
	var b bundle
	if err := json.Unmarshal(text, &b); err != nil {
		return bundle{}, errs.New(errs.Invalid, "expected JSON: %w", err)
	}
	if b.Epoch < 1 || len(b.Keys) == 0 {
		return bundle{}, errs.New(errs.Invalid, "expected an epoch and keys, found epoch %d and %d keys", b.Epoch, len(b.Keys))
	}
	for _, k := range b.Keys {
		if k.ID == "" || len(k.Secret) != keySize {
			return bundle{}, errs.New(errs.Invalid, "key %q: expected %d bytes, found %d", k.ID, keySize, len(k.Secret))
		}
	}
	if b.Cert == "" {
		return b, nil
	}
	var err error
	if b.authority, err = pki.ParseAuthority([]byte(b.Cert), []byte(b.Key)); err != nil {
		return bundle{}, err
	}
	if _, err := pki.ParseCertificates(b.roots()); err != nil {
		return bundle{}, err
	}
	return b, nil
}

func readBundle(dir, name string) (bundle, error) {
	path := filepath.Join(dir, name)
	text, err := pki.ReadFile(path)
	if err != nil {
		return bundle{}, err
	}
	b, err := parseBundle(text)
	if err != nil {
		return bundle{}, errs.New(errs.Invalid,
			"%s is damaged: %w; copy the file from another netmaster, or remove it and join one (--join, --cluster-secret-file)", path, err)
	}
	return b, nil
}

func (b bundle) write(dir, name string) error {
	text, err := json.Marshal(b)
	if err != nil {
		return errs.New(errs.Internal, "encode the authority: %w", err)
	}
	return pki.WriteFile(filepath.Join(dir, name), text)
}
