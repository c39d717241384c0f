package auth

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/contiv/netplugin/netmaster/seal"
	"github.com/contiv/netplugin/utils/errs"
)

// derived is what is made of one shared key, a key of its own for each purpose (RFC 5869).
type derived struct {
	id      string
	sign    ed25519.PrivateKey // login tokens
	verify  ed25519.PublicKey
	records []byte // MACs of records
}

// keyring derives keys from the shared ones, once each.
type keyring struct {
	keys func() []seal.Key

	mu   sync.Mutex
	from []seal.Key
	made []derived
}

// all returns the derived keys, newest first.
func (k *keyring) all() []derived {
	now := k.keys()
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.EqualFunc(now, k.from, sameKey) {
		k.from, k.made = slices.Clone(now), nil
		for _, key := range now {
			k.made = append(k.made, derive(key))
		}
	}
	return k.made
}

func (k *keyring) newest() (derived, error) {
	all := k.all()
	if len(all) == 0 {
		return derived{}, errs.New(errs.Unavailable, "this netmaster does not have the cluster's key yet")
	}
	return all[0], nil
}

func (k *keyring) byID(id string) (derived, bool) {
	for _, d := range k.all() {
		if d.id == id {
			return d, true
		}
	}
	return derived{}, false
}

func sameKey(a, b seal.Key) bool { return a.ID == b.ID && bytes.Equal(a.Secret, b.Secret) }

func derive(key seal.Key) derived {
	sign := ed25519.NewKeyFromSeed(expand(key, "contiv login token ed25519", ed25519.SeedSize))
	public, _ := sign.Public().(ed25519.PublicKey)
	return derived{id: key.ID, sign: sign, verify: public, records: expand(key, recordPurpose, sha256.Size)}
}

func expand(key seal.Key, purpose string, size int) []byte {
	out, _ := hkdf.Key(sha256.New, key.Secret, nil, purpose, size) // fails for sizes over 8 KiB only
	return out
}
