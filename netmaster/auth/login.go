package auth

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx"
)

// maxName bounds the name that somebody logs in by, in bytes.
const maxName = 256

// errWrong is the one answer to a wrong password, an unknown user and a disabled one.
var errWrong = &Error{Code: http.StatusUnauthorized, Text: "wrong user name or password"}

// serveLogin is POST login/.
func (s *Service) serveLogin(r *http.Request, _ identity.Identity) (answer, error) {
	var ask struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	text, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(text, &ask) != nil {
		return answer{}, refuse(http.StatusInternalServerError, "the request body is not JSON with username and password") // status as in the original
	}
	name := strings.TrimSpace(ask.Username)
	switch {
	case name == "" || ask.Password == "":
		return answer{}, refuse(http.StatusBadRequest, "username and password are required")
	case len(name) > maxName || len(ask.Password) > maxPassword || strings.ContainsFunc(name, isControl):
		return answer{}, refuse(http.StatusBadRequest, "username has more than %d bytes, or password more than %d, or username has control characters", maxName, maxPassword)
	}
	if at, _ := s.dir.at(); at == 0 {
		return answer{}, errs.New(errs.Unavailable, "this netmaster has not read the users from the store yet: try again")
	}
	p, err := s.tryLogin(r.Context(), name, ask.Password, r.RemoteAddr)
	return s.loggedIn(p, name, r.RemoteAddr, err)
}

// loggedIn tells the audit log, and issues a token.
func (s *Service) loggedIn(p person, name, remote string, err error) (answer, error) {
	if s.cfg.Audit != nil {
		login := Login{User: name, How: p.how, Source: remote}
		if err != nil {
			login.Failed = err.Error()
		}
		s.cfg.Audit(login)
	}
	if err != nil {
		s.cfg.Log.WithField("user", name).WithField("source", remote).WithError(err).Info("a login failed")
		return answer{}, err
	}
	token, err := s.issue(p)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, map[string]string{"token": token}}, nil
}

// tryLogin checks a password, unless the account or the source has to wait.
func (s *Service) tryLogin(ctx context.Context, name, password, remote string) (person, error) {
	account, source := "account "+strings.ToLower(name), "source "+netx.SourceOf(remote)
	if err := s.limiter.begin(account, source); err != nil {
		return person{how: byPassword}, err
	}
	p, err := s.checkPassword(ctx, name, password)
	switch {
	case err == nil:
		s.limiter.forget(account)
		s.limiter.takeBack(source)
	case !errors.Is(err, errWrong):
		s.limiter.takeBack(account, source)
	}
	return p, err
}

// checkPassword finds a user by name and password: a local one, or else one of LDAP. A name
// that no local user has costs the same hash as one that has.
func (s *Service) checkPassword(ctx context.Context, name, password string) (person, error) {
	u, local := s.dir.user(name)
	good, err := s.hasher.verify(ctx, u.Password, password)
	switch {
	case err != nil:
		return person{how: byPassword}, err
	case local && (!good || u.Disabled):
		return person{how: byPassword}, errWrong
	case local:
		return person{name: u.Name, how: byPassword, principals: []string{u.Name}, session: u.Session}, nil
	}
	config, ok := s.dir.ldapConfig()
	if !ok {
		return person{how: byPassword}, errWrong
	}
	principals, err := s.askLDAP(ctx, config, name, password)
	return person{name: name, how: byLDAP, principals: principals}, err
}

// serveLogout is POST logout/: the token of the request does not count any more.
func (s *Service) serveLogout(r *http.Request, who identity.Identity) (answer, error) {
	text, ok, err := tokenOf(r.Header)
	if err != nil {
		return answer{}, err
	}
	if !ok || who.How == byServiceToken || who.How == byKubernetes {
		return answer{}, refuse(http.StatusBadRequest, "%s has not logged in: there is nothing to log out of", who)
	}
	c, err := s.login(text)
	if err != nil {
		return answer{}, err
	}
	op, err := s.put(tokenRoot+c.ID, token{Kind: endedLogin, Name: c.Username, Created: s.cfg.Now(), Expires: c.ExpiresAt.Time})
	if err == nil {
		err = s.commit(r.Context(), objdb.Txn{Then: []objdb.Op{op}})
	}
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

// serveWhoAmI is GET whoami/.
func (s *Service) serveWhoAmI(_ *http.Request, who identity.Identity) (answer, error) {
	if who.Grants == nil {
		who.Grants = []identity.Grant{}
	}
	return answer{http.StatusOK, who}, nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
