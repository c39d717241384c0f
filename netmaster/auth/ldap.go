package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-ldap/ldap/v3"

	"github.com/contiv/netplugin/utils/errs"
)

// Bounds of what LDAP may take and say.
const (
	ldapTimeout  = 5 * time.Second // of each step
	maxGroups    = 2000
	inChain      = "1.2.840.113556.1.4.1941" // Active Directory: groups in groups
	maxLDAPUsers = 2                         // more than one is too many already
)

func (c ldapConfig) address() string { return net.JoinHostPort(c.Server, strconv.Itoa(c.Port)) }

// askLDAP checks a user's password and returns the groups, as principals. A wrong password
// and an unknown user are errWrong; an error of kind Unavailable names the server.
func (s *Service) askLDAP(ctx context.Context, c ldapConfig, name, password string) ([]string, error) {
	secret, err := s.unseal("the password of the LDAP service account", c.SealedPassword)
	if err != nil {
		return nil, err
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, c.unavailable(err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.Bind(c.ServiceAccountDN, secret); err != nil {
		return nil, c.unavailable(fmt.Errorf("log in as the service account: %w", err))
	}
	found, err := conn.Search(&ldap.SearchRequest{
		BaseDN: c.BaseDN, Scope: ldap.ScopeWholeSubtree, SizeLimit: maxLDAPUsers, TimeLimit: int(ldapTimeout.Seconds()),
		Filter: userFilter(name), Attributes: []string{"memberOf"},
	})
	switch {
	case err != nil && !ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded):
		return nil, c.unavailable(fmt.Errorf("search for the user: %w", err))
	case err != nil || len(found.Entries) != 1:
		return nil, errWrong // nobody, or nobody in particular
	}
	entry := found.Entries[0]
	groups, err := c.groups(conn, entry, name)
	if err != nil {
		return nil, c.unavailable(fmt.Errorf("search for the user's groups: %w", err))
	}
	// An empty password would be an anonymous bind, which succeeds (RFC 4513 §5.1.2).
	if password == "" {
		return nil, errWrong
	}
	switch err := conn.Bind(entry.DN, password); {
	case ldap.IsErrorAnyOf(err, ldap.LDAPResultInvalidCredentials, ldap.LDAPResultInappropriateAuthentication, ldap.LDAPResultConstraintViolation, ldap.LDAPResultUnwillingToPerform):
		return nil, errWrong
	case err != nil:
		return nil, c.unavailable(fmt.Errorf("check the password: %w", err))
	}
	return groups, nil
}

// dial connects, with TLS as configured.
func (c ldapConfig) dial(ctx context.Context) (*ldap.Conn, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.Server, InsecureSkipVerify: c.InsecureSkipVerify} // asked for
	if c.TLSCertIssuedTo != "" {
		settings.ServerName = c.TLSCertIssuedTo
	}
	if c.CA != "" {
		settings.RootCAs = x509.NewCertPool()
		settings.RootCAs.AppendCertsFromPEM([]byte(c.CA))
	}
	dialer := &net.Dialer{Timeout: ldapTimeout}
	plain, err := dialer.DialContext(ctx, "tcp", c.address())
	if err != nil {
		return nil, err
	}
	if err := plain.SetDeadline(time.Now().Add(4 * ldapTimeout)); err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	if c.TLS {
		plain = tls.Client(plain, settings) // the first request does the handshake
	}
	conn := ldap.NewConn(plain, c.TLS)
	conn.SetTimeout(ldapTimeout)
	conn.Start()
	if c.StartTLS {
		if err := conn.StartTLS(settings); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return conn, nil
}

// groups returns the groups of a user as principals: those that the entry names, and those
// that name the entry.
func (c ldapConfig) groups(conn *ldap.Conn, entry *ldap.Entry, name string) ([]string, error) {
	dns := entry.GetAttributeValues("memberOf")
	found, err := conn.Search(&ldap.SearchRequest{
		BaseDN: c.BaseDN, Scope: ldap.ScopeWholeSubtree, SizeLimit: maxGroups, TimeLimit: int(ldapTimeout.Seconds()),
		Filter: groupFilter(entry.DN, name), Attributes: []string{"1.1"}, // no attributes, RFC 4511 §4.5.1.8
	})
	if err != nil && !ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded) {
		return nil, err
	}
	for _, g := range found.Entries {
		dns = append(dns, g.DN)
	}
	principals := make([]string, 0, len(dns))
	for _, text := range dns {
		if p, ok := dnPrincipal(text); ok {
			principals = append(principals, p)
		}
	}
	slices.Sort(principals)
	return slices.Compact(principals), nil
}

// userFilter finds a person by the name used to log in (RFC 4515).
func userFilter(name string) string {
	n := ldap.EscapeFilter(name)
	return "(&(|(objectClass=person)(objectClass=posixAccount)(objectClass=user))(|(uid=" + n + ")(sAMAccountName=" + n + ")(userPrincipalName=" + n + ")))"
}

// groupFilter finds the groups that a person is a member of.
func groupFilter(dn, name string) string {
	d, n := ldap.EscapeFilter(dn), ldap.EscapeFilter(name)
	return "(|(member=" + d + ")(uniqueMember=" + d + ")(member:" + inChain + ":=" + d + ")(&(objectClass=posixGroup)(memberUid=" + n + ")))"
}

// dnPrincipal writes a DN in the one form that authorizations and tokens have: lower case,
// since it is compared without case, and without ';', which joins principals. ok is false
// for what is no DN, for one that is too long in this form, and for one that is not UTF-8
// (RFC 4514 section 2): several of these would look alike.
func dnPrincipal(text string) (principal string, ok bool) {
	dn, err := ldap.ParseDN(text)
	if err != nil || len(dn.RDNs) == 0 || !utf8.ValidString(text) {
		return "", false
	}
	for _, rdn := range dn.RDNs {
		for _, a := range rdn.Attributes { // before String sorts them
			if !utf8.ValidString(a.Value) || strings.ContainsFunc(a.Type, notInType) {
				return "", false
			}
			a.Type, a.Value = strings.ToLower(a.Type), strings.ToLower(a.Value)
		}
	}
	principal = strings.ReplaceAll(dn.String(), `\;`, `\3b`)
	return principal, len(principal) <= maxPrincipal
}

// notInType reports what is not in the name or the number of a type of attributes (RFC 4512
// section 1.4).
func notInType(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.'
}

// unavailable says that the server could not be asked, which tells nothing about the user.
func (c ldapConfig) unavailable(err error) error {
	return errs.New(errs.Unavailable, "the LDAP server %s cannot be asked: %w; local users can log in", c.address(), err)
}
