package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/contiv/netplugin/utils/errs"
)

// Bounds of passwords, in bytes, and of the parameters that a record may have.
const (
	minPassword = 8
	maxPassword = 1024
	saltSize    = 16
	hashSize    = 32
	maxMemory   = 1 << 20 // KiB
	maxTime     = 16
	maxThreads  = 16
	maxWaiting  = 128 // logins that wait for their turn
)

// hasher hashes passwords with argon2id (RFC 9106). It does so on half of the processors at
// most, so that logins leave the rest to other requests, and no more than maxWaiting wait.
type hasher struct {
	params  HashParameters
	turns   chan struct{}
	waiting chan struct{}
	salt    []byte // of the hash that stands for users who do not exist
	derive  func(password, salt []byte, p HashParameters) []byte
}

func newHasher(p HashParameters) *hasher {
	if p == (HashParameters{}) {
		p = DefaultHash
	}
	return &hasher{
		params: p, turns: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), waiting: make(chan struct{}, maxWaiting), salt: newSalt(),
		derive: func(password, salt []byte, p HashParameters) []byte {
			return argon2.IDKey(password, salt, p.Time, p.Memory, p.Threads, hashSize)
		},
	}
}

func newSalt() []byte {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	return salt
}

// hash returns what to store of a password, as a PHC string.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	if len(password) < minPassword || len(password) > maxPassword {
		return "", errs.New(errs.Invalid, "expected a password of %d to %d bytes", minPassword, maxPassword)
	}
	salt := newSalt()
	sum, err := h.run(ctx, password, salt, h.params)
	if err != nil {
		return "", err
	}
	b := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.params.Memory, h.params.Time, h.params.Threads, b.EncodeToString(salt), b.EncodeToString(sum)), nil
}

// verify reports whether a password is the one that stored was made of. It does the same
// work if stored is empty, and reports false.
func (h *hasher) verify(ctx context.Context, stored, password string) (bool, error) {
	params, salt, want := h.params, h.salt, make([]byte, hashSize)
	if stored != "" {
		var err error
		if params, salt, want, err = parseHash(stored); err != nil {
			return false, err
		}
	}
	got, err := h.run(ctx, password, salt, params)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(got, want) == 1 && stored != "", nil
}

// run waits for its turn and hashes.
func (h *hasher) run(ctx context.Context, password string, salt []byte, p HashParameters) ([]byte, error) {
	select {
	case h.waiting <- struct{}{}:
		defer func() { <-h.waiting }()
	default:
		return nil, &Error{Code: 503, Text: "too many people are logging in: try again", Wait: time.Second}
	}
	select {
	case h.turns <- struct{}{}:
		defer func() { <-h.turns }()
	case <-ctx.Done():
		return nil, errs.New(errs.Unavailable, "the client has gone: %w", ctx.Err())
	}
	return h.derive([]byte(password), salt, p), nil
}

// parseHash reads a PHC string. The error's kind is Internal: it does not come from a client.
func parseHash(stored string) (p HashParameters, salt, sum []byte, err error) {
	fields := strings.Split(stored, "$")
	var version int
	if len(fields) == 6 && fields[0] == "" && fields[1] == "argon2id" {
		_, err = fmt.Sscanf(fields[2]+" "+fields[3], "v=%d m=%d,t=%d,p=%d", &version, &p.Memory, &p.Time, &p.Threads)
		if err == nil {
			salt, err = base64.RawStdEncoding.DecodeString(fields[4])
		}
		if err == nil {
			sum, err = base64.RawStdEncoding.DecodeString(fields[5])
		}
	}
	if err != nil || version != argon2.Version || p.Memory == 0 || p.Memory > maxMemory || p.Time == 0 || p.Time > maxTime ||
		p.Threads == 0 || p.Threads > maxThreads || len(salt) < 8 || len(sum) != hashSize {
		return p, nil, nil, errs.New(errs.Internal, "the hash of the password is not one of argon2id: set the password again")
	}
	return p, salt, sum, nil
}

// newPassword returns a random password of 120 bits that can be typed.
func newPassword() string { return strings.ToLower(rand.Text()[:24]) }
