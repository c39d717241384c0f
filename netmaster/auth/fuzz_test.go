package auth_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/objdb/memory"
)

// FuzzToken: whatever is sent as a token, nobody gets in by it but its owner, and the answer is
// that it is no good.
func FuzzToken(f *testing.F) {
	sv := start(f, memory.New(), func(c *auth.Config) { c.Reviewer = &apiServer{} })
	token := sv.login("admin", sv.first)
	f.Add(token[:len(token)-1])
	for _, text := range []string{"", "x", "a.b.c", "contiv_0123456789abcdef_" + strings.Repeat("0", 64), pod + "x", "contiv_", "eyJhbGciOiJub25lIn0.e30.", strings.Repeat(".", 100)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header["X-Auth-Token"] = []string{text}
		id, ok, err := sv.s.Authenticate(r)
		switch {
		case text == token || text == pod:
		case ok != (text != ""), ok && (err == nil || auth.StatusOf(err) != http.StatusBadRequest), !ok && err != nil:
			t.Errorf("%q: %v, %t, %v", text, id, ok, err)
		}
	})
}
