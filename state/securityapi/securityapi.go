// Package securityapi holds the bodies of netmaster's calls about certificates: how hosts
// and netmasters join, and how an administrator manages both. Every netmaster answers these
// calls itself; followers do not pass them on.
package securityapi

import "time"

// Paths of the calls.
const (
	Prefix         = "/api/v1/security/"
	PathRoots      = Prefix + "roots"          // GET, open: Roots
	PathJoin       = Prefix + "join"           // POST, open: JoinRequest → Certificate
	PathRenew      = Prefix + "renew"          // POST, host: RenewRequest → Certificate
	PathMasterJoin = Prefix + "masters/join"   // POST, open, TLS 1.3: MasterJoinRequest → MasterJoinResponse
	PathMasterKeys = Prefix + "masters/bundle" // GET, master: the authority with its keys
	PathStatus     = Prefix + "status"         // GET, admin: Status
	PathTokens     = Prefix + "tokens"         // GET, POST TokenRequest → Token, DELETE /{id}; admin
	PathHosts      = Prefix + "hosts"          // GET; DELETE /{name} revokes; admin
	PathRotate     = Prefix + "ca/rotate"      // POST RotateRequest → Authority; admin
	PathIssue      = Prefix + "ca/issue"       // POST IssueRequest → Certificate; admin
)

// MaxBody bounds a request, and an answer but for lists, which MaxList bounds, in bytes.
const (
	MaxBody = 256 << 10
	MaxList = 16 << 20
)

// Audience is for whom a ServiceAccount token that stands for a join token is made.
const Audience = "contiv"

// Roots are the authorities that count. Active is the SPKI hash of the one that signs: who
// has a certificate of another one renews it soon.
type Roots struct {
	Active string `json:"active"`
	Roots  string `json:"roots"` // PEM
}

// JoinRequest asks for the first certificate of a host: with the two parts of a join token,
// or a ServiceAccount token, or neither from root of a netmaster's host.
type JoinRequest struct {
	ID             string `json:"id,omitempty"`
	Secret         string `json:"secret,omitempty"`
	ServiceAccount string `json:"serviceAccount,omitempty"`
	Host           string `json:"host"` // label
	CSR            string `json:"csr"`  // PEM
}

// RenewRequest asks for the next certificate of the host that sends it.
type RenewRequest struct {
	CSR string `json:"csr"`
}

// Certificate is the answer to a request for one.
type Certificate struct {
	Certificate string `json:"certificate"` // PEM, with intermediate ones
	Roots       string `json:"roots"`       // PEM
	Active      string `json:"active"`      // as in Roots
}

// MasterJoinRequest proves that the sender knows the cluster's secret: Proof is HMAC-SHA256
// of the secret over keying material of this TLS connection (RFC 8446 §7.5), in hex.
type MasterJoinRequest struct {
	Proof string `json:"proof"`
}

// MasterJoinResponse proves the same of the server, and hands over the authority.
type MasterJoinResponse struct {
	Proof  string `json:"proof"`
	Bundle []byte `json:"bundle"`
}

// TokenRequest asks for a join token.
type TokenRequest struct {
	TTL     string `json:"ttl,omitempty"`     // a duration; empty: 24h
	Uses    int    `json:"uses,omitempty"`    // 0: 1
	Host    string `json:"host,omitempty"`    // the only label that it is for
	Monitor bool   `json:"monitor,omitempty"` // for a collector of metrics instead of an agent
}

// Token is a join token. Token itself is in the answer that makes it, and nowhere else.
type Token struct {
	ID      string    `json:"id"`
	Token   string    `json:"token,omitempty"`
	Unit    string    `json:"unit"`
	Host    string    `json:"host,omitempty"`
	Left    int       `json:"left"` // uses
	Expires time.Time `json:"expires"`
}

// Host is who has a certificate of the cluster.
type Host struct {
	Name      string    `json:"name"`
	Unit      string    `json:"unit"`
	State     string    `json:"state"` // valid, expired or revoked
	Joined    string    `json:"joined,omitempty"`
	Issued    time.Time `json:"issued"`
	Expires   time.Time `json:"expires"`
	Authority string    `json:"authority"` // SPKI hash of who signed
}

// States of a Host.
const (
	HostValid   = "valid"
	HostExpired = "expired"
	HostRevoked = "revoked"
)

// RotateRequest asks for the next authority; with Finish, to believe only the one that signs
// now.
type RotateRequest struct {
	Finish bool `json:"finish,omitempty"`
}

// Authority is the certificate authority of a cluster.
type Authority struct {
	Hash     string    `json:"hash"` // SPKI, hex
	Expires  time.Time `json:"expires"`
	Rotating bool      `json:"rotating"`           // former ones still count
	Former   []string  `json:"former,omitempty"`   // their hashes
	Waiting  []string  `json:"waiting,omitempty"`  // who has no certificate of this one yet
	ByHand   bool      `json:"byHand,omitempty"`   // the rotation ends by RotateRequest.Finish only
	Problem  string    `json:"problem,omitempty"`  // this netmaster's, in one line
	RootsPEM string    `json:"rootsPEM,omitempty"` // the certificates
}

// IssueRequest asks for a certificate for a person or program, such as a monitor.
type IssueRequest struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	TTL  string `json:"ttl,omitempty"`
	CSR  string `json:"csr"`
}

// Status says how far a cluster is closed.
type Status struct {
	Mode      string               `json:"mode"`
	Authority Authority            `json:"authority"`
	Hosts     []Host               `json:"hosts"`
	Plain     map[string]time.Time `json:"plain,omitempty"` // addresses that have come without TLS since netmaster started, and when last
}

// Error is the answer other than 200.
type Error struct {
	Error string `json:"error"`
}
