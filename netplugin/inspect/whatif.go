package inspect

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Policies are the NetworkPolicies that this host enforces.
type Policies interface {
	Explain(q flowapi.PolicyQuestion) ([]flowapi.Decision, error)
	// Preview compares policies over what recorded tells.
	Preview(ctx context.Context, recorded func(ctx context.Context, f flowapi.Filter, take func(*flowapi.Event) error) error, req flowapi.PolicyPreviewRequest) (*flowapi.Preview, error)
}

// Services are those of Kubernetes that this host leads to.
type Services interface {
	Find(q flowapi.ServiceQuestion) (flowapi.ServiceAnswer, error)
}

const (
	maxPolicyQuestion = 16 << 10 // bytes
	maxPolicyPreview  = 2 << 20
	previewTimeout    = 7 * time.Second // shorter than netmaster waits for an agent
)

// explain answers what NetworkPolicies decide; without any they decide nothing.
func (s Sources) explain(w http.ResponseWriter, r *http.Request) {
	var q flowapi.PolicyQuestion
	if !readJSON(w, r, maxPolicyQuestion, &q) {
		return
	}
	decisions, err := []flowapi.Decision{}, error(nil)
	if s.Policies != nil {
		decisions, err = s.Policies.Explain(q)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, decisions)
}

// service answers which Service is meant, and who answers for it; without any there is none.
func (s Sources) service(w http.ResponseWriter, r *http.Request) {
	var q flowapi.ServiceQuestion
	if !readJSON(w, r, maxPolicyQuestion, &q) {
		return
	}
	answer, err := flowapi.ServiceAnswer{}, error(nil)
	if s.Kubernetes != nil {
		answer, err = s.Kubernetes.Find(q)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, answer)
}

// preview answers what NetworkPolicies would have done to the recorded connections.
func (s Sources) preview(w http.ResponseWriter, r *http.Request) {
	var req flowapi.PolicyPreviewRequest
	switch {
	case s.Flows == nil:
		refuse(w, errNoFlows)
		return
	case s.Policies == nil:
		refuse(w, errs.New(errs.NotFound, "this host enforces no NetworkPolicies"))
		return
	case !readJSON(w, r, maxPolicyPreview, &req):
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), previewTimeout)
	defer cancel()
	recorded := func(ctx context.Context, f flowapi.Filter, take func(*flowapi.Event) error) error {
		return s.Flows.Stream(ctx, f, take, func() error { return nil })
	}
	p, err := s.Policies.Preview(ctx, recorded, req)
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, p)
}

// readJSON reads a body of limited size, or answers 400.
func readJSON(w http.ResponseWriter, r *http.Request, most int64, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, most)).Decode(into); err != nil {
		refuse(w, errs.New(errs.Invalid, "request body: %w", err))
		return false
	}
	return true
}
