// Package seal keeps secrets in the store unreadable for whoever has the store but not a
// netmaster's disk: passwords of BGP, LDAP and so on.
//
// A secret is encrypted and authenticated by XChaCha20-Poly1305, with a random nonce of 24
// bytes, and a key that is derived by HKDF-SHA256 (RFC 5869) from a key of the cluster and
// the purpose. So a text that is sealed for one purpose cannot be opened for another. The
// text says by which of the cluster's keys: "sealed:v1:<key id>:<base64>".
package seal

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/contiv/netplugin/utils/errs"
)

// prefix is what sealed texts begin with.
const prefix = "sealed:v1:"

// Key is a secret that all netmasters of a cluster share and nobody else has, and from which
// keys are derived (RFC 5869). ID names it, is not secret and has no colon; Secret is 32
// random bytes.
type Key struct {
	ID     string `json:"id"`
	Secret []byte `json:"secret"`
}

// Sealer seals and opens the secrets of one purpose. Create it with New. Safe for
// concurrent use.
type Sealer struct {
	keys    func() []Key
	purpose string
}

// New returns the Sealer of a purpose ("bgp", "ldap"). keys returns the cluster's keys,
// newest first: secrets are sealed with the newest and opened with any.
func New(purpose string, keys func() []Key) *Sealer { return &Sealer{keys: keys, purpose: purpose} }

// Sealed reports whether a text is one that Seal has made.
func Sealed(text string) bool { return strings.HasPrefix(text, prefix) }

// Seal returns the text to store for a secret. The error's kind is Internal.
func (s *Sealer) Seal(secret []byte) (string, error) {
	keys := s.keys()
	if len(keys) == 0 {
		return "", errs.New(errs.Internal, "seal a secret: there is no key of the cluster")
	}
	aead, err := s.cipher(keys[0])
	if err != nil {
		return "", err
	}
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(secret)+aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return "", errs.New(errs.Internal, "seal a secret: %w", err)
	}
	return prefix + keys[0].ID + ":" + base64.RawStdEncoding.EncodeToString(aead.Seal(nonce, nonce, secret, nil)), nil
}

// Open returns the secret of a sealed text. The error's kind is NotFound if this netmaster
// does not have the key, else Invalid; it never says what was sealed.
func (s *Sealer) Open(text string) ([]byte, error) {
	id, data, ok := strings.Cut(strings.TrimPrefix(text, prefix), ":")
	box, err := base64.RawStdEncoding.DecodeString(data)
	if !Sealed(text) || !ok || err != nil || len(box) < chacha20poly1305.NonceSizeX {
		return nil, errs.New(errs.Invalid, "open a secret: expected a sealed text")
	}
	for _, k := range s.keys() {
		if k.ID != id {
			continue
		}
		aead, err := s.cipher(k)
		if err != nil {
			return nil, err
		}
		secret, err := aead.Open(nil, box[:aead.NonceSize()], box[aead.NonceSize():], nil)
		if err != nil {
			return nil, errs.New(errs.Invalid, "open a secret: the text has been changed, or is for another purpose than %s", s.purpose)
		}
		return secret, nil
	}
	return nil, errs.New(errs.NotFound, "open a secret: this netmaster does not have key %.40q of the cluster; set the secret again", id)
}

func (s *Sealer) cipher(k Key) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, k.Secret, nil, "contiv seal "+s.purpose, chacha20poly1305.KeySize)
	if err != nil {
		return nil, errs.New(errs.Internal, "derive the key for %s: %w", s.purpose, err)
	}
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, errs.New(errs.Internal, "make the cipher for %s: %w", s.purpose, err)
	}
	return aead, nil
}
