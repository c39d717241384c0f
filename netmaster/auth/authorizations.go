package auth

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// maxPrincipal bounds the name of a principal, in bytes.
const maxPrincipal = 1024

// authorizationView is an authorization as the API shows it, with the original's names.
type authorizationView struct {
	AuthzUUID     string
	PrincipalName string
	Local         bool
	Role          identity.Role
	TenantName    string
}

func (a authorization) view() authorizationView {
	return authorizationView{AuthzUUID: a.UUID, PrincipalName: a.Principal, Local: a.Local, Role: a.Role, TenantName: a.Tenant}
}

// newAuthorization sets the UUID, which follows from the rest: the same one cannot be made
// twice.
func newAuthorization(a authorization) authorization {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %t %q %q %q", a.Principal, a.Local, a.UserID, a.Role, a.Tenant))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8, RFC 9562 §5.8
	a.UUID = fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	return a
}

// createAuthorization is POST authorizations/.
func (s *Service) createAuthorization(r *http.Request, who identity.Identity) (answer, error) {
	var ask struct {
		PrincipalName string        `json:"principalName"`
		Local         bool          `json:"local"`
		Role          identity.Role `json:"role"`
		TenantName    string        `json:"tenantName"`
	}
	if err := readBody(r, &ask); err != nil {
		return answer{}, err
	}
	grant, err := checkGrant(identity.Grant{Role: ask.Role, Tenant: ask.TenantName})
	if err != nil {
		return answer{}, err
	}
	a := authorization{Principal: ask.PrincipalName, Local: ask.Local, Role: grant.Role, Tenant: grant.Tenant}
	txn := objdb.Txn{}
	if a.Local {
		u, ok := s.dir.user(a.Principal)
		if !ok {
			return answer{}, errs.New(errs.Invalid, "principalName: there is no local user %q", a.Principal)
		}
		a.UserID = u.ID
		txn.If = append(txn.If, objdb.Present(userRoot+u.Name))
	} else if a.Principal, err = checkPrincipal(a.Principal); err != nil {
		return answer{}, err
	}
	a = newAuthorization(a)
	op, err := s.put(grantRoot+a.UUID, a)
	if err != nil {
		return answer{}, err
	}
	txn.Then = append(txn.Then, op)
	if err := s.commit(r.Context(), txn); err != nil {
		return answer{}, err
	}
	s.cfg.Log.WithField("principal", a.Principal).WithField("role", a.Role).WithField("tenant", a.Tenant).WithField("by", who.String()).Info("gave a role")
	return answer{http.StatusCreated, a.view()}, nil
}

// checkGrant checks role and tenant. The error's kind is Invalid.
func checkGrant(g identity.Grant) (identity.Grant, error) {
	switch {
	case g.Tenant != "" && (!contivmodel.IsName(g.Tenant) || len(g.Tenant) > 64):
		return g, errs.New(errs.Invalid, "tenantName: %q is not the name of a tenant", g.Tenant)
	case g.Role == identity.Admin:
		return identity.Grant{Role: identity.Admin}, nil // of no tenant
	case g.Role == identity.Ops && g.Tenant == "":
		return g, errs.New(errs.Invalid, "tenantName: the role ops needs a tenant")
	case g.Role == identity.Ops, g.Role == identity.Viewer:
		return g, nil
	}
	return g, errs.New(errs.Invalid, "role: expected admin, ops or viewer, got %q", g.Role)
}

// checkPrincipal brings the name of a principal that is not local into the form in which
// logins have it. The error's kind is Invalid.
func checkPrincipal(name string) (string, error) {
	switch {
	case name == "" || len(name) > maxPrincipal || strings.ContainsFunc(name, isControl):
		return "", errs.New(errs.Invalid, "principalName: expected 1 to %d bytes without control characters", maxPrincipal)
	case strings.HasPrefix(name, oidcPrefix):
		return oidcPrincipal(strings.TrimPrefix(name, oidcPrefix)), nil
	case strings.HasPrefix(name, "system:"):
		return name, nil
	}
	p, ok := dnPrincipal(name)
	if !ok {
		return "", errs.New(errs.Invalid, "principalName %q: expected the DN of a group in LDAP, oidc:GROUP, or system:serviceaccount:NAMESPACE:NAME; a local user needs local true", name)
	}
	return p, nil
}

// listAuthorizations is GET authorizations/.
func (s *Service) listAuthorizations(*http.Request, identity.Identity) (answer, error) {
	views := []authorizationView{}
	for _, a := range s.dir.allAuthorizations() {
		views = append(views, a.view())
	}
	return answer{http.StatusOK, views}, nil
}

// getAuthorization is GET authorizations/{uuid}/.
func (s *Service) getAuthorization(r *http.Request, _ identity.Identity) (answer, error) {
	a, ok := s.dir.authorization(r.PathValue("uuid"))
	if !ok {
		return answer{}, refuse(http.StatusNotFound, "authorization %s does not exist", r.PathValue("uuid"))
	}
	return answer{http.StatusOK, a.view()}, nil
}

// deleteAuthorization is DELETE authorizations/{uuid}/.
func (s *Service) deleteAuthorization(r *http.Request, who identity.Identity) (answer, error) {
	uuid := r.PathValue("uuid")
	a, ok := s.dir.authorization(uuid)
	switch {
	case !ok:
		return answer{}, refuse(http.StatusNotFound, "authorization %s does not exist", uuid)
	case a.Local && a.Principal == builtInAdmin && a.Role == identity.Admin:
		return answer{}, refuse(http.StatusBadRequest, "the role of the built-in user admin cannot be taken away; the user can be disabled")
	}
	if err := s.commit(r.Context(), objdb.Txn{Then: []objdb.Op{objdb.Delete(grantRoot + uuid)}}); err != nil {
		return answer{}, err
	}
	s.cfg.Log.WithField("principal", a.Principal).WithField("role", a.Role).WithField("tenant", a.Tenant).WithField("by", who.String()).Info("took a role away")
	return answer{status: http.StatusNoContent}, nil
}
