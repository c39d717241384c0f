package auth

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"

	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// A login by a browser leaves a cookie for the way to the provider and back, signed, so that
// any netmaster can end what another one has begun.
const (
	stateCookie = "contiv-oidc"
	stateIssuer = "contiv-oidc" // not that of login tokens
	stateValid  = 10 * time.Minute
)

// stateClaims are what the cookie says.
type stateClaims struct {
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"` // PKCE, RFC 7636
	jwt.RegisteredClaims
}

// serveOIDC is GET oidc/: 200 {"browser"} says whether a page can offer oidc/login/.
func (s *Service) serveOIDC(*http.Request, identity.Identity) (answer, error) {
	c, ok := s.dir.oidcConfig()
	return answer{http.StatusOK, map[string]bool{"browser": ok && c.RedirectURL != ""}}, nil
}

// redirectToProvider is GET oidc/login/: it sends a browser to the provider.
func (s *Service) redirectToProvider(w http.ResponseWriter, r *http.Request) {
	to, cookie, err := s.beginBrowser(r)
	if err != nil {
		WriteError(w, err)
		return
	}
	setState(w, cookie, int(stateValid.Seconds()))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (s *Service) beginBrowser(r *http.Request) (to, cookie string, err error) {
	p, free, err := s.provider(r.Context())
	if err != nil {
		return "", "", err
	}
	defer free()
	if p.config.RedirectURL == "" {
		return "", "", errs.New(errs.Invalid, "OIDC is configured without redirect_url: a browser cannot come back")
	}
	key, err := s.keys.newest()
	if err != nil {
		return "", "", err
	}
	c := stateClaims{Nonce: randomHex(16), Verifier: oauth2.GenerateVerifier(), RegisteredClaims: jwt.RegisteredClaims{
		ID: randomHex(16), Issuer: stateIssuer, ExpiresAt: jwt.NewNumericDate(s.cfg.Now().Add(stateValid)),
	}}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
	t.Header["kid"] = key.id
	if cookie, err = t.SignedString(key.sign); err != nil {
		return "", "", err
	}
	return p.oauth.AuthCodeURL(c.ID, oidc.Nonce(c.Nonce), oauth2.S256ChallengeOption(c.Verifier)), cookie, nil
}

// returnFromProvider is GET oidc/callback/: it sends the browser to the page, with the token
// in the fragment of the URL, which browsers do not send to any server, or with what is wrong.
func (s *Service) returnFromProvider(w http.ResponseWriter, r *http.Request) {
	setState(w, "", -1)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	a, err := s.endBrowser(r)
	body, _ := a.body.(map[string]string)
	switch {
	case err == nil:
		http.Redirect(w, r, "/#token="+url.QueryEscape(body["token"]), http.StatusSeeOther)
	case strings.Contains(r.Header.Get("Accept"), "text/html"):
		http.Redirect(w, r, "/#login_error="+url.QueryEscape(err.Error()), http.StatusSeeOther)
	default:
		WriteError(w, err)
	}
}

func (s *Service) endBrowser(r *http.Request) (answer, error) {
	cookie, err := r.Cookie(stateCookie)
	if err != nil {
		return answer{}, errs.New(errs.Invalid, "this browser has not begun to log in here, or too long ago: begin again")
	}
	var c stateClaims
	_, err = jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithIssuer(stateIssuer), jwt.WithExpirationRequired(), jwt.WithTimeFunc(s.cfg.Now)).
		ParseWithClaims(cookie.Value, &c, s.keyOf)
	query := r.URL.Query()
	if err != nil || subtle.ConstantTimeCompare([]byte(c.ID), []byte(query.Get("state"))) != 1 {
		return answer{}, errs.New(errs.Invalid, "this is not the end of the login that this browser has begun: begin again")
	}
	p, free, err := s.provider(r.Context())
	if err != nil {
		return answer{}, err
	}
	defer free()
	if query.Get("error") != "" {
		return answer{}, refuse(http.StatusUnauthorized, "the OIDC provider %s refuses the login: %.200q", p.config.Issuer, query.Get("error"))
	}
	got, err := p.oauth.Exchange(p.with(r.Context()), query.Get("code"), oauth2.VerifierOption(c.Verifier))
	return s.identified(r, p, got, err, c.Nonce)
}

func setState(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{Name: stateCookie, Value: value, Path: Prefix + "oidc/", MaxAge: maxAge, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}
