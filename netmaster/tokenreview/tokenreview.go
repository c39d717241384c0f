// Package tokenreview asks the API server of Kubernetes whose token this is (TokenReview of
// authentication.k8s.io/v1).
package tokenreview

import (
	"context"
	"slices"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/utils/errs"
)

// nodeKey is where Kubernetes names the node of the pod that a token is bound to.
const nodeKey = "authentication.kubernetes.io/node-name"

// Reviewer asks an API server. It is an auth.Reviewer. Safe for concurrent use.
type Reviewer struct {
	client   authclient.TokenReviewInterface
	audience string
}

// New returns a Reviewer of tokens for an audience; "" means those for the API server itself.
func New(client authclient.TokenReviewInterface, audience string) *Reviewer {
	return &Reviewer{client: client, audience: audience}
}

// Review says whose token this is. ok is false if it is not good; the error's kind is
// Unavailable: the API server could not be asked.
func (k *Reviewer) Review(ctx context.Context, token string) (review auth.Review, ok bool, err error) {
	ask := &authv1.TokenReview{Spec: authv1.TokenReviewSpec{Token: token}}
	if k.audience != "" {
		ask.Spec.Audiences = []string{k.audience}
	}
	got, err := k.client.Create(ctx, ask, metav1.CreateOptions{})
	if err != nil {
		return auth.Review{}, false, errs.New(errs.Unavailable, "ask Kubernetes whose token this is: %w", err)
	}
	// An API server that does not know audiences leaves them out.
	if !got.Status.Authenticated || k.audience != "" && !slices.Contains(got.Status.Audiences, k.audience) {
		return auth.Review{}, false, nil
	}
	user := got.Status.User
	review = auth.Review{User: user.Username, Groups: user.Groups}
	if node := user.Extra[nodeKey]; len(node) == 1 {
		review.Node = node[0]
	}
	return review, true, nil
}
