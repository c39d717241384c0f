package auth

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// How long service tokens are good, and how many there are.
const (
	defaultTokenValid  = 30 * 24 * time.Hour
	shortestTokenValid = time.Minute
	longestTokenValid  = 366 * 24 * time.Hour
	maxServiceTokens   = 1000
)

// tokenView is a service token as the API shows it. Token is there when it is made only.
type tokenView struct {
	ID         string        `json:"id"`
	Name       string        `json:"name"`
	Role       identity.Role `json:"role"`
	TenantName string        `json:"tenantName,omitempty"`
	Creator    string        `json:"creator"`
	Created    time.Time     `json:"created"`
	Expires    time.Time     `json:"expires"`
	Token      string        `json:"token,omitempty"`
}

func (t token) view(id string) tokenView {
	return tokenView{ID: id, Name: t.Name, Role: t.Grant.Role, TenantName: t.Grant.Tenant, Creator: t.Creator, Created: t.Created, Expires: t.Expires}
}

// createToken is POST tokens/: {"name", "role", "tenantName", "ttl": "720h"}. An admin can make
// any, a local user what the user may do itself; the token then does no more than that user
// at any time.
func (s *Service) createToken(r *http.Request, who identity.Identity) (answer, error) {
	var ask struct {
		Name       string        `json:"name"`
		Role       identity.Role `json:"role"`
		TenantName string        `json:"tenantName"`
		TTL        string        `json:"ttl"`
	}
	if err := readBody(r, &ask); err != nil {
		return answer{}, err
	}
	grant, err := checkGrant(identity.Grant{Role: ask.Role, Tenant: ask.TenantName})
	if err != nil {
		return answer{}, err
	}
	valid := defaultTokenValid
	if ask.TTL != "" {
		if valid, err = time.ParseDuration(ask.TTL); err != nil || valid < shortestTokenValid || valid > longestTokenValid {
			return answer{}, errs.New(errs.Invalid, "ttl: expected a duration from %s to %s, such as 720h, got %q", shortestTokenValid, longestTokenValid, ask.TTL)
		}
	}
	switch local := who.Kind == identity.User && who.How == byPassword; {
	case !userName.MatchString(ask.Name):
		return answer{}, errs.New(errs.Invalid, "name: expected 1 to 64 letters, digits, '.', '_', '@' and '-', a letter or digit first")
	case !covers(who, grant), !local && !who.IsAdmin(), who.How == byServiceToken:
		return answer{}, refuse(http.StatusForbidden, "%s is not allowed to make a token with the role %s of tenant %q", who, grant.Role, grant.Tenant)
	case len(s.dir.serviceTokens()) >= maxServiceTokens:
		return answer{}, errs.New(errs.Invalid, "there are %d service tokens already: remove some", maxServiceTokens)
	}
	id, secret, now := randomHex(8), randomHex(32), s.cfg.Now().UTC().Truncate(time.Second)
	t := token{Kind: serviceToken, Name: ask.Name, Hash: hashSecret(secret), Grant: grant, Creator: who.Name, Created: now, Expires: now.Add(valid)}
	if who.Name == "" {
		t.Creator = string(who.Kind)
	}
	if u, ok := s.dir.user(who.Name); ok && isSelf(who, u.Name) {
		t.UserID = u.ID
	}
	op, err := s.put(tokenRoot+id, t)
	if err == nil {
		err = s.commit(r.Context(), objdb.Txn{If: []objdb.Cmp{objdb.Absent(tokenRoot + id)}, Then: []objdb.Op{op}})
	}
	if err != nil {
		return answer{}, err
	}
	s.cfg.Log.WithField("token", t.Name).WithField("by", who.String()).Info("made a service token")
	view := t.view(id)
	view.Token = "contiv_" + id + "_" + secret
	return answer{http.StatusCreated, view}, nil
}

// listTokens is GET tokens/: all for an admin, else the client's own.
func (s *Service) listTokens(_ *http.Request, who identity.Identity) (answer, error) {
	views := []tokenView{}
	for id, t := range s.dir.serviceTokens() {
		if who.IsAdmin() || isSelf(who, t.Creator) {
			views = append(views, t.view(id))
		}
	}
	slices.SortFunc(views, func(a, b tokenView) int { return strings.Compare(a.Name+" "+a.ID, b.Name+" "+b.ID) })
	return answer{http.StatusOK, views}, nil
}

// deleteToken is DELETE tokens/{id}/.
func (s *Service) deleteToken(r *http.Request, who identity.Identity) (answer, error) {
	id := r.PathValue("id")
	t, ok := s.dir.serviceTokens()[id]
	if !ok || !who.IsAdmin() && !isSelf(who, t.Creator) {
		return answer{}, refuse(http.StatusNotFound, "service token %s does not exist", id)
	}
	if err := s.commit(r.Context(), objdb.Txn{Then: []objdb.Op{objdb.Delete(tokenRoot + id)}}); err != nil {
		return answer{}, err
	}
	s.cfg.Log.WithField("token", t.Name).WithField("by", who.String()).Info("removed a service token")
	return answer{status: http.StatusNoContent}, nil
}
