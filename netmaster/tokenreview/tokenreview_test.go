package tokenreview_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	authv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/netmaster/tokenreview"
	"github.com/contiv/netplugin/utils/errs"
)

// TestReview: only a token that is authenticated for the audience counts.
func TestReview(t *testing.T) {
	for name, tt := range map[string]struct {
		status authv1.TokenReviewStatus
		err    error
		ok     bool
		kind   errs.Kind
	}{
		"good":               {authv1.TokenReviewStatus{Authenticated: true, Audiences: []string{"contiv"}}, nil, true, errs.Other},
		"another audience":   {authv1.TokenReviewStatus{Authenticated: true, Audiences: []string{"other"}}, nil, false, errs.Other},
		"audiences unknown":  {authv1.TokenReviewStatus{Authenticated: true}, nil, false, errs.Other},
		"not authenticated":  {authv1.TokenReviewStatus{Audiences: []string{"contiv"}, Error: "expired"}, nil, false, errs.Other},
		"the server is down": {authv1.TokenReviewStatus{}, errors.New("connection refused"), false, errs.Unavailable},
	} {
		client := fake.NewClientset()
		client.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
			asked := a.(clienttesting.CreateAction).GetObject().(*authv1.TokenReview)
			if asked.Spec.Token != "the-token" || !cmp.Equal(asked.Spec.Audiences, []string{"contiv"}) {
				t.Errorf("%s: asked %+v", name, asked.Spec)
			}
			got := asked.DeepCopy()
			got.Status = tt.status
			got.Status.User = authv1.UserInfo{
				Username: "system:serviceaccount:a:b", Groups: []string{"g"},
				Extra: map[string]authv1.ExtraValue{"authentication.kubernetes.io/node-name": {"node1"}},
			}
			return true, got, tt.err
		})
		review, ok, err := tokenreview.New(client.AuthenticationV1().TokenReviews(), "contiv").Review(t.Context(), "the-token")
		if ok != tt.ok || (err != nil) != (tt.err != nil) || err != nil && !errs.Is(err, tt.kind) {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
		if diff := cmp.Diff(auth.Review{User: "system:serviceaccount:a:b", Groups: []string{"g"}, Node: "node1"}, review); tt.ok && diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
