package audit

import (
	"time"
)

// Record is one line of the log.
type Record struct {
	Time     time.Time `json:"time"`
	Who      string    `json:"who"`    // "user jane", "host node1", "anonymous"
	How      string    `json:"how"`    // how they were identified
	Source   string    `json:"source"` // address of the client
	Verb     string    `json:"verb"`   // HTTP method, or LOGIN
	Path     string    `json:"path"`   // of the request, without its query
	Kind     string    `json:"kind,omitempty"`
	Key      string    `json:"key,omitempty"` // of an object
	Tenant   string    `json:"tenant,omitempty"`
	Status   int       `json:"status"`             // HTTP
	Reason   string    `json:"reason,omitempty"`   // of a failure, shortened
	Revision string    `json:"revision,omitempty"` // of the store, after a change
	Dropped  int64     `json:"dropped,omitempty"`  // records that were lost before this one
}

// Denied reports whether a request was refused for who sent it.
func (r *Record) Denied() bool { return r.Status == 401 || r.Status == 403 }

// Query chooses records.
type Query struct {
	Since  time.Time // zero: all
	User   string    // as in Who, or the name of a user; "" for all
	Denied bool      // only those that were refused
}

// Parameters of a Query in a URL.
const (
	QuerySince  = "since" // RFC 3339
	QueryUser   = "user"
	QueryDenied = "denied" // "true"
	QueryFollow = "follow" // "true": the answer goes on with new records
)

func (q Query) wants(r *Record) bool {
	return !r.Time.Before(q.Since) && (!q.Denied || r.Denied()) &&
		(q.User == "" || r.Who == q.User || r.Who == "user "+q.User)
}
