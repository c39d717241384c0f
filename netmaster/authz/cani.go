package authz

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// Question is the body of POST PathCanI.
type Question struct {
	Verb string `json:"verb"` // list, get, inspect, create, update or delete
	// Object is COLLECTION or TYPE, with /KEY for all verbs but list ("network/blue:web"), or
	// a path of the API ("/api/v1/trace/"), for which list, get and inspect are the same.
	Object string `json:"object"`
}

// Answer is what Decide says to a Question. Reason is empty if it is allowed.
type Answer struct {
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
}

// methods are those of the verbs.
var methods = map[string]string{
	"list": http.MethodGet, "get": http.MethodGet, "inspect": http.MethodGet,
	"create": http.MethodPost, "update": http.MethodPut, "delete": http.MethodDelete,
}

// Verbs are what a Question can be about, in alphabetical order.
func Verbs() []string {
	return []string{"create", "delete", "get", "inspect", "list", "update"}
}

// request translates a question into the request that it is about. The error's kind is
// Invalid.
func (q Question) request() (Request, error) {
	method, ok := methods[q.Verb]
	if !ok {
		return Request{}, errs.New(errs.Invalid, "verb %.40q is unknown, expected one of %s", q.Verb, strings.Join(Verbs(), ", "))
	}
	if strings.HasPrefix(q.Object, "/") {
		return Request{Method: method, Path: q.Object}, nil
	}
	name, key, keyed := strings.Cut(q.Object, "/")
	kinds := contivmodel.Kinds()
	i := slices.IndexFunc(kinds, func(k contivmodel.AnyKind) bool {
		d := k.Description()
		return strings.EqualFold(d.Type, name) || strings.EqualFold(d.Collection, name)
	})
	if i < 0 {
		return Request{}, errs.New(errs.Invalid, "object %.80q: expected TYPE/KEY with a type of %s, or a path", q.Object, strings.Join(contivmodel.Types(), ", "))
	}
	root := objects
	switch {
	case q.Verb == "list" && keyed:
		return Request{}, errs.New(errs.Invalid, "object %.80q: verb list takes a type without a key", q.Object)
	case q.Verb != "list" && key == "":
		return Request{}, errs.New(errs.Invalid, "object %.80q: verb %s takes TYPE/KEY", q.Object, q.Verb)
	case q.Verb == "inspect":
		root = inspect
	}
	path := root + kinds[i].Description().Collection + "/"
	if keyed {
		path += url.PathEscape(key) + "/"
	}
	return Request{Method: method, Path: path}, nil
}

// CanI answers a question for an identity, by the same decision that its request gets. The
// error's kind is Invalid.
func (t *Rules) CanI(id identity.Identity, q Question) (Answer, error) {
	req, err := q.request()
	if err != nil {
		return Answer{}, err
	}
	if err := t.Decide(id, req); err != nil {
		return Answer{Reason: err.Error()}, nil
	}
	return Answer{Allowed: true}, nil
}

// maxQuestion bounds the body of a question, in bytes.
const maxQuestion = 4 << 10

func (t *Rules) serveCanI(w http.ResponseWriter, r *http.Request, id identity.Identity) {
	var q Question
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxQuestion)).Decode(&q)
	if err != nil {
		err = errs.New(errs.Invalid, `question: expected {"verb":…,"object":…}: %w`, err)
	}
	var a Answer
	if err == nil {
		a, err = t.CanI(id, q)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a) // fails only if the client has gone
}
