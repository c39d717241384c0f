package auth

import (
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// Authenticate finds out who sends a request by the token in X-Auth-Token or Authorization:
// Bearer. It reports false if there is no token at all. An error is an *Error.
func (s *Service) Authenticate(r *http.Request) (identity.Identity, bool, error) {
	id, ok, err := s.identify(r)
	return id, ok, withStatus(err)
}

func (s *Service) identify(r *http.Request) (identity.Identity, bool, error) {
	text, ok, err := tokenOf(r.Header)
	if !ok || err != nil {
		return identity.Identity{}, ok, err
	}
	if at, _ := s.dir.at(); at == 0 {
		return identity.Identity{}, true, errs.New(errs.Unavailable, "this netmaster has not read the users from the store yet: try again")
	}
	id := identity.Identity{Kind: identity.User, Source: r.RemoteAddr}
	switch {
	case strings.HasPrefix(text, "contiv_"):
		name, grants, err := s.service(text)
		id.Name, id.How, id.Grants = "token/"+name, byServiceToken, grants
		return id, true, err
	case s.isLogin(text):
		c, err := s.login(text)
		if err == nil {
			id.Grants, err = s.grantsOfLogin(c)
		}
		id.Name, id.How = c.Username, c.How
		return id, true, err
	}
	review, err := s.reviews.ask(r.Context(), text)
	if err != nil {
		return id, true, err
	}
	id.Name, id.How = review.User, byKubernetes
	id.Grants = s.dir.grantsOfPrincipals(append([]string{review.User}, review.Groups...))
	return id, true, nil
}

// tokenOf reads the token of a request. The error's status is 400.
func tokenOf(h http.Header) (text string, ok bool, err error) {
	text = h.Get("X-Auth-Token")
	if text == "" {
		value := h.Get("Authorization")
		if value == "" {
			return "", false, nil
		}
		scheme, rest, _ := strings.Cut(value, " ")
		if !strings.EqualFold(scheme, "Bearer") || rest == "" {
			return "", true, refuse(http.StatusBadRequest, "header Authorization: expected Bearer and a token")
		}
		text = strings.TrimSpace(rest)
	}
	if len(text) > maxToken {
		return "", true, refuse(http.StatusBadRequest, "the token has %d bytes, at most %d are allowed", len(text), maxToken)
	}
	return text, true, nil
}

// isLogin reports whether a token says of itself that this cluster has issued it; anything
// else is for Kubernetes to look at, if there is one.
func (s *Service) isLogin(text string) bool {
	if s.cfg.Reviewer == nil {
		return true
	}
	if _, known := s.verified.get(text); known {
		return true
	}
	var c jwt.RegisteredClaims
	_, _, err := jwt.NewParser().ParseUnverified(text, &c)
	return err != nil || c.Issuer == issuer
}
