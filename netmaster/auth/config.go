package auth

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/seal"
	"github.com/contiv/netplugin/objdb"
)

// Prefix is where the login API is served.
const Prefix = "/api/v1/auth_proxy/"

// Sealer encrypts secrets that have to be kept in the store.
type Sealer interface {
	Seal(secret []byte) (string, error)
	Open(sealed string) ([]byte, error)
}

// Review is what Kubernetes says about a token.
type Review struct {
	User   string   // "system:serviceaccount:NAMESPACE:NAME"
	Groups []string // "system:serviceaccounts:NAMESPACE", …
	Node   string   // of the pod that the token is bound to; empty: none
}

// Reviewer asks Kubernetes whose token this is. ok is false if the token is not good; an
// error means that Kubernetes could not be asked. See netmaster/tokenreview.
type Reviewer interface {
	Review(ctx context.Context, token string) (review Review, ok bool, err error)
}

// Login is an attempt to log in, for the audit log. It carries no secret.
type Login struct {
	User   string // as given; may not exist
	How    string // as identity.Identity.How
	Source string // address of the client
	Failed string // why it was refused; empty: it succeeded
}

// Config is what a Service is made of.
type Config struct {
	// Store is the cluster's store, for writing; nil until it is open.
	Store func() objdb.Store
	// Keys returns the shared keys, newest first. Tokens are signed with the newest, and
	// accepted of all.
	Keys func() []seal.Key
	// Sealer seals the passwords of LDAP and OIDC; nil: they cannot be configured.
	Sealer Sealer
	// Reviewer accepts tokens of Kubernetes; nil: they are not accepted.
	Reviewer Reviewer
	// Bootstrap makes the built-in users admin and ops if there are none.
	Bootstrap bool
	// Announce is told the first password of admin, once, by the netmaster that made the
	// user. It must not end up in a log. nil: admin gets no password, root sets one.
	Announce func(user, password string)
	// Forget is called when admin's password is not that first one any more, at every start
	// too: whatever Announce keeps can go. May be nil.
	Forget func()
	// Audit is told of every attempt to log in; nil: nobody is.
	Audit   func(Login)
	Log     logrus.FieldLogger
	Version string           // what GET version/ answers
	Now     func() time.Time // nil: time.Now
	// Hash says how passwords are hashed; the zero value means DefaultHash.
	Hash HashParameters
}

// HashParameters are those of argon2id (RFC 9106).
type HashParameters struct {
	Memory  uint32 // KiB
	Time    uint32 // passes
	Threads uint8
}

// DefaultHash costs about 30 ms of one processor and 19 MiB.
var DefaultHash = HashParameters{Memory: 19 << 10, Time: 2, Threads: 1}
