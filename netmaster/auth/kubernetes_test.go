package auth_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/utils/errs"
)

// Tokens as Kubernetes has them.
var (
	pod         = kubernetesToken("pod")
	someoneElse = kubernetesToken("person")
	bad         = kubernetesToken("junk")
)

func kubernetesToken(subject string) string {
	b64 := base64.RawURLEncoding
	return b64.EncodeToString([]byte(`{"alg":"RS256","kid":"x"}`)) + "." + b64.EncodeToString([]byte(`{"iss":"https://kubernetes.default.svc","sub":"`+subject+`"}`)) + ".c2lnbmF0dXJl"
}

// apiServer knows some tokens.
type apiServer struct {
	asked atomic.Int32
	down  atomic.Bool
}

func (a *apiServer) Review(_ context.Context, token string) (auth.Review, bool, error) {
	a.asked.Add(1)
	switch {
	case a.down.Load():
		return auth.Review{}, false, errs.Wrap(errs.Unavailable, errors.New("ask Kubernetes whose token this is: no answer"))
	case token == pod:
		return auth.Review{User: "system:serviceaccount:ci:deploy", Groups: []string{"system:serviceaccounts:ci", "admin", "oidc:admins"}}, true, nil
	case token == someoneElse:
		return auth.Review{User: "admin", Groups: []string{"system:masters"}}, true, nil
	}
	return auth.Review{}, false, nil
}

// TestServiceAccounts: a token of Kubernetes gives the roles of its ServiceAccount and of
// its groups that are Kubernetes' own, and is not asked about each time.
func TestServiceAccounts(t *testing.T) {
	api := &apiServer{}
	sv := start(t, memory.New(), func(c *auth.Config) { c.Reviewer = api })
	for principal, role := range map[string]string{
		"system:serviceaccount:ci:deploy": `"ops","tenantName":"blue"`, "system:serviceaccounts:ci": `"viewer"`, "oidc:admins": `"admin"`, "system:masters": `"admin"`,
	} {
		sv.want(201, "POST", "authorizations/", root, `{"principalName":"`+principal+`","role":`+role+`}`)
	}
	for range 3 {
		if got := sv.grants(pod); got != "ops:blue viewer" {
			t.Errorf("the ServiceAccount may %q", got)
		}
	}
	if n := api.asked.Load(); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	sv.want(400, "GET", "whoami/", someoneElse, "")
	sv.want(400, "GET", "whoami/", bad, "")
	sv.want(400, "POST", "logout/", pod, "")
	api.down.Store(true)
	sv.want(200, "GET", "whoami/", pod, "")
	sv.advance(time.Minute)
	if got := sv.want(503, "GET", "whoami/", pod, ""); !strings.Contains(got.body, "Kubernetes") {
		t.Errorf("without the API server: %s", got.body)
	}
	sv.want(200, "GET", "whoami/", sv.login("admin", sv.first), "")
}
