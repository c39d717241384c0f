package contivmodel

import (
	"encoding/json"
	"time"
)

// What a Notice says has happened to an object, and the name of its server-sent event.
const (
	NoticeReset   = "reset"   // this is all there is; what else was known is gone
	NoticeAdded   = "added"   // an object is new
	NoticeChanged = "changed" // an object has other settings
	NoticeRemoved = "removed" // an object is gone
)

// Notice is one message of the event stream of the objects (GET /api/v1/watch).
type Notice struct {
	Event string `json:"event"`
	// Revision is where to go on from after this notice: a revision of the store; 0 in
	// the middle of a transaction.
	Revision int64 `json:"revision,omitempty"`
	// Objects is everything there is, sorted by kind and key, in a reset; else the one
	// object.
	Objects []Object `json:"objects"`
}

// Object is an object of any kind, as it is stored. Its link-sets are derived by who
// serves it and therefore empty.
type Object struct {
	Kind   string          `json:"kind"`             // type string, "network"
	Key    string          `json:"key"`              // "default:net1"
	Object json.RawMessage `json:"object,omitempty"` // nothing if it is gone
}

// Changes is what has happened to objects (GET /api/v1/changes).
type Changes struct {
	// Since is from when on nothing is missing: netmaster keeps what it has seen itself, and
	// only so much of it.
	Since   time.Time `json:"since"`
	Changes []Change  `json:"changes"` // the oldest first
}

// Change is what has happened to an object.
type Change struct {
	Time     time.Time       `json:"time"`     // when netmaster has seen it
	Revision int64           `json:"revision"` // of the store
	Event    string          `json:"event"`    // added, changed or removed
	Kind     string          `json:"kind"`
	Key      string          `json:"key"`
	Before   json.RawMessage `json:"before,omitempty"` // nothing if it was added
	After    json.RawMessage `json:"after,omitempty"`  // nothing if it was removed
}
