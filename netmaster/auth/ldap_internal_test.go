package auth

import (
	"strings"
	"testing"

	"github.com/go-ldap/ldap/v3"
)

// FuzzFilters: no name changes what a filter asks for.
func FuzzFilters(f *testing.F) {
	for _, name := range []string{"jane", "*", "jane)(uid=*", "\\", "a\x00b", "(&", "\xff\xfe", "jane)(|(objectClass=*"} {
		f.Add(name)
	}
	shape := func(t *testing.T, filter string) string {
		p, err := ldap.CompileFilter(filter)
		if err != nil {
			t.Fatalf("%q: %v", filter, err)
		}
		var b strings.Builder
		text, err := ldap.DecompileFilter(p)
		if err != nil {
			t.Fatalf("%q: %v", filter, err)
		}
		for _, r := range text {
			if strings.ContainsRune("()&|!=*", r) {
				b.WriteRune(r)
			}
		}
		return b.String()
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" {
			return
		}
		for _, filter := range []func(string) string{userFilter, func(n string) string { return groupFilter("cn="+n, n) }} {
			plain := shape(t, filter("x"))
			if got := shape(t, filter(name)); strings.Count(got, "(") != strings.Count(plain, "(") || strings.Count(got, "*") != strings.Count(plain, "*") {
				t.Errorf("%q gives %s, a filter of another shape than %s", name, filter(name), filter("x"))
			}
		}
	})
}

// FuzzPrincipal: a principal is one after it has been joined with others, and is in a form
// that stays as it is.
func FuzzPrincipal(f *testing.F) {
	for _, name := range []string{"cn=a,dc=b", "CN=a\\;b,dc=c", "oidc:a;b", "system:serviceaccount:a:b", "cn=a;dc=b", "cn=B+cn=a", "\xd6=\xb1+\xb1=A", `cn=\\d6`} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p, err := checkPrincipal(name)
		if err != nil {
			return
		}
		if !strings.HasPrefix(p, "system:") && strings.Contains(p, ";") {
			t.Errorf("%q gives %q, which is two when joined", name, p)
		}
		if again, err := checkPrincipal(p); err != nil || again != p {
			t.Errorf("%q gives %q, that %q, %v", name, p, again, err)
		}
	})
}
