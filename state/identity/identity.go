// Package identity says who sends a request, and what they may do: what a listener has found
// out, in terms that everything behind it decides on. The decisions themselves are in
// netmaster/authz.
package identity

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// Kind says what sort of client an identity is.
type Kind string

// The kinds of clients.
const (
	Anonymous Kind = "anonymous" // nobody knows; Grants say what that allows here
	Root      Kind = "root"      // the root user of a netmaster's host, by its unix socket
	User      Kind = "user"      // a person or script, by a token
	Host      Kind = "host"      // the agent of a host, by its certificate; Name is the host label
	Master    Kind = "master"    // a netmaster, by its certificate
	Monitor   Kind = "monitor"   // a collector of metrics, by its certificate
)

// Role is what a grant allows.
type Role string

// The roles, from the most to the least.
const (
	Admin  Role = "admin"  // everything
	Ops    Role = "ops"    // the objects of one tenant
	Viewer Role = "viewer" // to read, of one tenant or of all
)

// Grant gives a role. Tenant is empty for all tenants; ops always has one.
type Grant struct {
	Role   Role   `json:"role"`
	Tenant string `json:"tenant,omitempty"`
}

// Identity is a client as a listener has identified it. It is a value; compare the fields.
type Identity struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"` // user, host label, or address of a netmaster; not empty but for Anonymous
	// How it was identified: "password", "ldap", "oidc", "kubernetes", "service token",
	// "certificate", "socket"; for Anonymous "plain" or "tls".
	How    string  `json:"how"`
	Source string  `json:"source"` // address of the client, "ip:port" or "unix"
	Grants []Grant `json:"grants,omitempty"`
}

// String names the identity for logs: "user jane", "host node1", "anonymous".
func (id Identity) String() string {
	if id.Name == "" {
		return string(id.Kind)
	}
	return string(id.Kind) + " " + id.Name
}

// IsAdmin reports whether everything is allowed: to root, to netmasters, and by the role.
func (id Identity) IsAdmin() bool {
	return id.Kind == Root || id.Kind == Master || slices.ContainsFunc(id.Grants, func(g Grant) bool { return g.Role == Admin })
}

// Sees reports whether objects of a tenant may be read; "" asks for what belongs to no
// tenant, and for all tenants at once.
func (id Identity) Sees(tenant string) bool {
	return id.IsAdmin() || slices.ContainsFunc(id.Grants, func(g Grant) bool {
		return g.Role == Viewer && g.Tenant == "" || g.Tenant != "" && g.Tenant == tenant
	})
}

// Changes reports whether objects of a tenant may be written; "" as for Sees.
func (id Identity) Changes(tenant string) bool {
	return id.IsAdmin() || tenant != "" && slices.Contains(id.Grants, Grant{Role: Ops, Tenant: tenant})
}

// Tenants returns the tenants that the grants name, sorted, and whether they are all there
// are to see.
func (id Identity) Tenants() (names []string, all bool) {
	for _, g := range id.Grants {
		if g.Tenant != "" && !slices.Contains(names, g.Tenant) {
			names = append(names, g.Tenant)
		}
	}
	slices.Sort(names)
	return names, id.Sees("")
}

type key struct{}

// With returns a context that carries an identity.
func With(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, key{}, id)
}

// From returns the identity that a context carries: by default an Anonymous that is granted
// nothing, so that what nobody has identified is refused.
func From(ctx context.Context) Identity {
	if id, ok := ctx.Value(key{}).(Identity); ok {
		return id
	}
	return Identity{Kind: Anonymous}
}

// Header carries an identity from a follower to the leader. It counts only from a client
// that is a netmaster; every listener removes it from requests of others.
const Header = "X-Contiv-Identity"

// Forward puts an identity into the header of a request to the leader.
func Forward(h http.Header, id Identity) {
	text, _ := json.Marshal(id) // strings only
	h.Set(Header, string(text))
}

// Forwarded reads the identity that a netmaster has put into a header. The error's kind is
// Invalid.
func Forwarded(h http.Header) (Identity, error) {
	var id Identity
	values := h.Values(Header)
	if len(values) != 1 || json.Unmarshal([]byte(values[0]), &id) != nil || id.Kind == "" {
		return Identity{}, errs.New(errs.Invalid, "header %s: expected one identity, got %q", Header, strings.Join(values, ", "))
	}
	return id, nil
}
