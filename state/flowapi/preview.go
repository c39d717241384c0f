package flowapi

import (
	"encoding/json"
	"time"
)

// Change is a change of an object of the REST API that has not been made.
type Change struct {
	Verb   string          `json:"verb"` // put | delete
	Kind   string          `json:"kind"` // as in the object's path: rules, policys, endpointGroups, …
	Key    string          `json:"key"`
	Object json.RawMessage `json:"object,omitempty"`
}

// PreviewRequest asks what changes would have done to the recorded connections.
type PreviewRequest struct {
	Changes []Change `json:"changes,omitempty"`
	// NetworkPolicies are Kubernetes objects (networking.k8s.io/v1) as JSON, put in place of
	// those of the same name.
	NetworkPolicies []json.RawMessage `json:"networkPolicies,omitempty"`
	Since           time.Time         `json:"since,omitzero"`  // default: an hour ago
	Limit           int               `json:"limit,omitempty"` // connections listed for each list; default 100
}

// PolicyPreviewRequest is what an agent is asked of NetworkPolicies.
type PolicyPreviewRequest struct {
	NetworkPolicies []json.RawMessage `json:"networkPolicies"`
	Since           time.Time         `json:"since"`
	Limit           int               `json:"limit"`
}

// Preview is the outcome: of all connections that were recorded, those that the changes would
// have decided differently. The lists are bounded, the counts are not.
type Preview struct {
	Examined   int             `json:"examined"`
	WouldDeny  int             `json:"wouldDeny"`
	WouldAllow int             `json:"wouldAllow"`
	Denied     []PreviewedFlow `json:"denied"`
	Allowed    []PreviewedFlow `json:"allowed"`
	Missing    []Missing       `json:"missing,omitempty"`
	Gaps       []Gap           `json:"gaps,omitempty"` // what was not recorded could not be examined
}

// PreviewedFlow is a recorded connection and what would decide about it now.
type PreviewedFlow struct {
	Record Record   `json:"record"`
	By     Decision `json:"by"`
}
