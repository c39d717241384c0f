package auth

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"net/http"
	"sync"
)

// maxVerified bounds how many login tokens are remembered.
const maxVerified = 4096

var errExpired = refuse(http.StatusBadRequest, "the token has expired: log in again")

// verified remembers login tokens whose signature was right, by their hash: to check one takes
// longer than all else that a request needs. What can change is checked at each request.
type verified struct {
	mu     sync.Mutex
	tokens map[[sha256.Size]byte]verifiedToken
}

type verifiedToken struct {
	claims claims
	keyID  string
	key    ed25519.PublicKey
}

func (v *verified) get(text string) (verifiedToken, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	t, ok := v.tokens[sha256.Sum256([]byte(text))]
	return t, ok
}

func (v *verified) put(text string, t verifiedToken) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.tokens == nil || len(v.tokens) >= maxVerified {
		v.tokens = map[[sha256.Size]byte]verifiedToken{}
	}
	v.tokens[sha256.Sum256([]byte(text))] = t
}

// login checks a login token: its signature, once; its key, its time and that it has not been
// logged out, each time.
func (s *Service) login(text string) (claims, error) {
	t, known := s.verified.get(text)
	if known {
		key, ok := s.keys.byID(t.keyID)
		known = ok && bytes.Equal(key.verify, t.key)
	}
	if !known {
		var err error
		if t, err = s.parse(text); err != nil {
			return t.claims, err
		}
		s.verified.put(text, t)
	}
	if !s.cfg.Now().Before(t.claims.ExpiresAt.Time) {
		return t.claims, errExpired
	}
	if _, ended := s.dir.token(t.claims.ID); ended {
		return t.claims, refuse(http.StatusBadRequest, "the token was logged out: log in again")
	}
	return t.claims, nil
}
