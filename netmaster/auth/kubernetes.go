package auth

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of reviews of tokens by Kubernetes.
const (
	reviewFor     = 30 * time.Second // a token that was good is not looked at again
	reviewTimeout = 5 * time.Second
	maxReviews    = 1024 // remembered
	maxAsking     = 8    // at the same time
)

// reviews remembers for a short time what Kubernetes has said about good tokens.
type reviews struct {
	reviewer Reviewer
	now      func() time.Time
	asking   chan struct{}

	mu    sync.Mutex
	known map[[sha256.Size]byte]remembered
}

type remembered struct {
	review Review
	until  time.Time
}

func newReviews(r Reviewer, now func() time.Time) *reviews {
	return &reviews{reviewer: r, now: now, asking: make(chan struct{}, maxAsking), known: map[[sha256.Size]byte]remembered{}}
}

// ask says whose token this is. Only users and groups whose names begin with "system:" are
// passed on: others could be those of another source of users.
func (r *reviews) ask(ctx context.Context, token string) (Review, error) {
	sum := sha256.Sum256([]byte(token))
	if review, ok := r.recall(sum); ok {
		return review, nil
	}
	select {
	case r.asking <- struct{}{}:
		defer func() { <-r.asking }()
	default:
		return Review{}, &Error{Code: http.StatusServiceUnavailable, Text: "too many tokens are being reviewed by Kubernetes: try again", Wait: time.Second}
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review, ok, err := r.reviewer.Review(ctx, token)
	switch {
	case err != nil:
		return Review{}, err
	case !ok || !strings.HasPrefix(review.User, "system:serviceaccount:"):
		return Review{}, refuse(http.StatusBadRequest, "Kubernetes does not accept the token as that of a ServiceAccount")
	}
	review.Groups = slices.DeleteFunc(slices.Clone(review.Groups), func(g string) bool { return !strings.HasPrefix(g, "system:") })
	r.remember(sum, review)
	return review, nil
}

func (r *reviews) recall(sum [sha256.Size]byte) (Review, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.known[sum]
	return e.review, ok && r.now().Before(e.until)
}

func (r *reviews) remember(sum [sha256.Size]byte, review Review) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxReviews {
		clear(r.known) // they are asked for again
	}
	r.known[sum] = remembered{review: review, until: r.now().Add(reviewFor)}
}
