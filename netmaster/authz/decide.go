package authz

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// Config is what the rules depend on.
type Config struct {
	// Swarm: agents make the networks that a Docker swarm has been told of.
	Swarm bool
}

// Rules decides. It is immutable; create it with New.
type Rules struct {
	cfg   Config
	table []rule
}

// New returns the rules of a cluster.
func New(cfg Config) *Rules { return &Rules{cfg: cfg, table: table()} }

// Request is what a decision is about.
type Request struct {
	Method string
	Path   string // as it was sent, with its escapes
	// Body reads the body of a request that writes an object of a tenant; nil: it says
	// nothing of a tenant.
	Body func() ([]byte, error)
}

// errNoIdentity is the error for a request that nobody has identified.
var errNoIdentity = errs.New(errs.Unauthenticated, "no token: log in first (netctl login), or use the certificate of a host")

// Decide returns nil if an identity may send a request. Otherwise the error says in one
// line what is needed; its kind is Unauthenticated if nobody knows who asks, else
// Forbidden; or Invalid for a body that cannot be read.
func (t *Rules) Decide(id identity.Identity, req Request) error {
	if id.IsAdmin() {
		return nil
	}
	r, value := t.find(req)
	if r.need == nothing {
		return nil
	}
	if id.Kind == identity.Anonymous && len(id.Grants) == 0 {
		return errNoIdentity
	}
	d := decision{rules: t, id: id, req: req, rule: r, value: value}
	return d.decide()
}

// find returns the rule for a request, and the value of its variable.
func (t *Rules) find(req Request) (rule, string) {
	method := req.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if segments, ok := split(req.Path); ok {
		for _, r := range t.table {
			if value, ok := r.match(method, segments); ok {
				return r, value
			}
		}
	}
	return rule{need: adminOnly}, ""
}

// decision is one request with the rule that it comes under.
type decision struct {
	rules *Rules
	id    identity.Identity
	req   Request
	rule  rule
	value string // of the path's variable
}

func (d decision) decide() error {
	switch d.rule.need {
	case nothing, known:
		return nil
	case identified:
		return d.unless(len(d.id.Grants) > 0, "a role is")
	case everything:
		return d.unless(d.id.Sees(""), "role viewer of all tenants is")
	case metrics:
		return d.unless(d.id.Sees("") || d.id.Kind == identity.Monitor, "role viewer of all tenants is")
	case readTenant:
		return d.unless(d.id.Sees(d.tenant()), "role viewer or ops of tenant "+d.tenant()+" is")
	case changeTenant:
		return d.change()
	case swarmNetwork:
		if d.rules.cfg.Swarm && d.id.Kind == identity.Host {
			return d.unless(ofSwarm(d.value), "a host makes and removes networks of its swarm only; role admin is")
		}
		return d.change()
	case agent:
		return d.unless(d.id.Kind == identity.Host, "the certificate of a host is")
	case ownHost:
		return d.unless(d.id.Kind == identity.Host && d.id.Name == d.value, "the certificate of host "+d.value+" is")
	default:
		return d.unless(false, "role admin is")
	}
}

// change decides on writing an object of a tenant: of the one that the key names, and of
// the one that the body names. They must be the same, which the object model checks as well.
func (d decision) change() error {
	need := "role ops of tenant " + d.tenant() + " is"
	if err := d.unless(d.id.Changes(d.tenant()), need); err != nil || d.req.Method == http.MethodDelete || d.req.Body == nil {
		return err
	}
	body, err := d.req.Body()
	if err != nil {
		return err
	}
	obj := d.rule.kind.Empty()
	if contivmodel.DecodeJSON(body, obj) != nil {
		return nil // refused as what it is by whoever serves it
	}
	if named := d.rule.kind.Tenant(obj); named != d.tenant() {
		return errs.New(errs.Forbidden, "%s may not change %s: the path names tenant %s, the body tenant %q", d.id, d.subject(), d.tenant(), named)
	}
	return nil
}

// tenant is the tenant that the key names.
func (d decision) tenant() string {
	tenant, _, _ := strings.Cut(d.value, ":")
	return tenant
}

// unless refuses what is not allowed.
func (d decision) unless(allowed bool, needed string) error {
	if allowed {
		return nil
	}
	verb := "change"
	if d.req.Method == http.MethodGet || d.req.Method == http.MethodHead {
		verb = "read"
	}
	return errs.New(errs.Forbidden, "%s may not %s %s: %s needed", d.id, verb, d.subject(), needed)
}

// subject names what the request is about, without saying whether it exists.
func (d decision) subject() string {
	if d.rule.kind == nil {
		return fmt.Sprintf("%.80q", d.req.Path)
	}
	desc := d.rule.kind.Description()
	if d.value == "" || !inTenant(desc) {
		return desc.Collection
	}
	return desc.Collection + " of tenant " + d.tenant()
}

// swarmID is what the ids of a swarm's objects look like: 25 digits to the base 36.
var swarmID = regexp.MustCompile(`^[0-9a-z]{25}$`)

// ofSwarm reports whether a network has been made for a swarm: it is called after the id
// of the docker network.
func ofSwarm(key string) bool {
	tenant, name, _ := strings.Cut(key, ":")
	return tenant == contivmodel.DefaultTenant && swarmID.MatchString(name)
}

// Visible reports whether an identity may see an object, by its type and key as they are in
// the store and in events.
func Visible(id identity.Identity, kind, key string) bool {
	if id.Sees("") {
		return true
	}
	kinds := contivmodel.Kinds()
	i := slices.IndexFunc(kinds, func(k contivmodel.AnyKind) bool { return k.Description().Type == kind })
	if i < 0 {
		return false
	}
	if !inTenant(kinds[i].Description()) {
		return kind == contivmodel.GlobalType && len(id.Grants) > 0
	}
	tenant, _, _ := strings.Cut(key, ":")
	return tenant != "" && id.Sees(tenant)
}

// Covers reports whether a rule says what a request needs; otherwise it is for admins.
func (t *Rules) Covers(method, path string) bool {
	segments, ok := split(path)
	return ok && slices.ContainsFunc(t.table, func(r rule) bool {
		_, ok := r.match(method, segments)
		return ok
	})
}

// Object names the object that a request is about: its kind, its key, and the tenant that
// the key names; nothing if it is about none.
func (t *Rules) Object(method, path string) (kind, key, tenant string) {
	r, value := t.find(Request{Method: method, Path: path})
	if r.kind == nil {
		return "", "", ""
	}
	d := decision{rule: r, value: value}
	if inTenant(r.kind.Description()) {
		tenant = d.tenant()
	}
	return r.kind.Description().Type, value, tenant
}
