package auth

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/contiv/netplugin/state/identity"
)

const (
	loginValid    = 10 * time.Hour
	issuer        = "contiv"
	maxToken      = 16 << 10 // bytes of a token in a header
	maxPrincipals = 8 << 10  // bytes of the principals in a token
)

// How users are identified, as identity.Identity.How.
const (
	byPassword     = "password"
	byLDAP         = "ldap"
	byOIDC         = "oidc"
	byKubernetes   = "kubernetes"
	byServiceToken = "service token"
)

// claims are what a login token says (RFC 7519). Principals and Role are as in the original;
// Role is for display only.
type claims struct {
	Username   string `json:"username"`
	Principals string `json:"principals"` // joined by ';'
	Role       string `json:"role"`
	How        string `json:"how"`
	Session    string `json:"session,omitempty"` // of a local user
	jwt.RegisteredClaims
}

// person is who has logged in.
type person struct {
	name       string
	how        string
	principals []string
	session    string
}

// issue makes a login token.
func (s *Service) issue(p person) (string, error) {
	key, err := s.keys.newest()
	if err != nil {
		return "", err
	}
	now := s.cfg.Now()
	grants := s.dir.grantsOfPrincipals(p.principals)
	if u, ok := s.dir.user(p.name); ok && p.how == byPassword {
		grants = s.dir.grantsOf(u)
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{
		Username: p.name, Principals: s.join(p.principals), Role: displayRole(grants), How: p.how, Session: p.session,
		RegisteredClaims: jwt.RegisteredClaims{ID: randomHex(16), Issuer: issuer, IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(loginValid))},
	})
	t.Header["kid"] = key.id
	return t.SignedString(key.sign)
}

// join writes principals into a token: if they are too long, those that have a role now.
func (s *Service) join(principals []string) string {
	all := strings.Join(principals, ";")
	if len(all) <= maxPrincipals {
		return all
	}
	var some []string
	size := 0
	for _, p := range principals {
		if size += len(p) + 1; len(s.dir.grantsOfPrincipals([]string{p})) > 0 && size <= maxPrincipals {
			some = append(some, p)
		}
	}
	return strings.Join(some, ";")
}

func displayRole(grants []identity.Grant) string {
	for _, role := range []identity.Role{identity.Admin, identity.Ops, identity.Viewer} {
		if slices.ContainsFunc(grants, func(g identity.Grant) bool { return g.Role == role }) {
			return string(role)
		}
	}
	return ""
}

// parse checks the signature of a login token, and that its claims are whole.
func (s *Service) parse(text string) (verifiedToken, error) {
	t := verifiedToken{}
	_, err := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithIssuer(issuer),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(s.cfg.Now)).ParseWithClaims(text, &t.claims, func(parsed *jwt.Token) (any, error) {
		key, err := s.keyOf(parsed)
		t.keyID, _ = parsed.Header["kid"].(string)
		t.key, _ = key.(ed25519.PublicKey)
		return key, err
	})
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return t, errExpired
	case err != nil || t.claims.Username == "" || t.claims.ID == "":
		return t, refuse(http.StatusBadRequest, "the token is not valid: log in again")
	}
	return t, nil
}

// keyOf finds the key that checks the signature of a token.
func (s *Service) keyOf(t *jwt.Token) (any, error) {
	id, _ := t.Header["kid"].(string)
	key, ok := s.keys.byID(id)
	if !ok {
		return nil, errors.New("unknown key")
	}
	return key.verify, nil
}

// grantsOfLogin looks up what the owner of a login token may do now.
func (s *Service) grantsOfLogin(c claims) ([]identity.Grant, error) {
	if c.How != byPassword {
		return s.dir.grantsOfPrincipals(strings.Split(c.Principals, ";")), nil
	}
	u, ok := s.dir.user(c.Username)
	switch {
	case !ok:
		return nil, refuse(http.StatusUnauthorized, "user %s does not exist any more", c.Username)
	case u.Disabled:
		return nil, refuse(http.StatusUnauthorized, "user %s is disabled", c.Username)
	case u.Session != c.Session:
		return nil, refuse(http.StatusBadRequest, "the token has ended, since user %s was changed: log in again", c.Username)
	}
	return s.dir.grantsOf(u), nil
}

// serviceTokenText is "contiv_<id>_<secret>", id 16 hex digits, secret 64.
var serviceTokenText = regexp.MustCompile(`^contiv_([0-9a-f]{16})_([0-9a-f]{64})$`)

// service finds the owner of a service token.
func (s *Service) service(text string) (name string, grants []identity.Grant, err error) {
	m := serviceTokenText.FindStringSubmatch(text)
	if m == nil {
		return "", nil, refuse(http.StatusBadRequest, "the token is not valid")
	}
	t, ok := s.dir.token(m[1])
	sum := hashSecret(m[2])
	switch {
	case !ok || t.Kind != serviceToken || subtle.ConstantTimeCompare([]byte(sum), []byte(t.Hash)) != 1:
		return "", nil, refuse(http.StatusBadRequest, "the service token is not valid: it may have been removed")
	case !s.cfg.Now().Before(t.Expires):
		return "", nil, refuse(http.StatusBadRequest, "the service token %s has expired", t.Name)
	case t.UserID == "":
		return t.Name, []identity.Grant{t.Grant}, nil
	}
	u, ok := s.dir.user(t.Creator)
	if !ok || u.ID != t.UserID || u.Disabled {
		return "", nil, refuse(http.StatusUnauthorized, "user %s, who made the service token %s, is disabled or does not exist any more", t.Creator, t.Name)
	}
	creator := identity.Identity{Kind: identity.User, Name: u.Name, Grants: s.dir.grantsOf(u)}
	if !covers(creator, t.Grant) {
		return t.Name, nil, nil
	}
	return t.Name, []identity.Grant{t.Grant}, nil
}

// covers reports whether who may hand out a grant.
func covers(who identity.Identity, g identity.Grant) bool {
	return who.IsAdmin() || g.Role == identity.Ops && who.Changes(g.Tenant) || g.Role == identity.Viewer && who.Sees(g.Tenant)
}

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
