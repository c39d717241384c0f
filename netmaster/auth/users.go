package auth

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// userName is what local users can be called.
var userName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// maxText bounds first and last names, in bytes.
const maxText = 256

// userView is a user as the API shows one.
type userView struct {
	Username  string `json:"username"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Disable   bool   `json:"disable"`
}

func (u user) view() userView {
	return userView{Username: u.Name, FirstName: u.FirstName, LastName: u.LastName, Disable: u.Disabled}
}

// userEdit is what a request can say of a user; nil: nothing.
type userEdit struct {
	Username  *string `json:"username"`
	Password  *string `json:"password"`
	FirstName *string `json:"first_name"`
	LastName  *string `json:"last_name"`
	Disable   *bool   `json:"disable"`
}

func newUser(name string) user { return user{ID: randomHex(8), Name: name, Session: randomHex(8)} }

func builtIn(name string) bool { return name == builtInAdmin || name == builtInOps }

func noUser(name string) error { return refuse(http.StatusNotFound, "user %s does not exist", name) }

// createUser is POST local_users/.
func (s *Service) createUser(r *http.Request, _ identity.Identity) (answer, error) {
	edit, hash, err := s.readUser(r)
	if err != nil {
		return answer{}, err
	}
	if edit.Username == nil || !userName.MatchString(*edit.Username) {
		return answer{}, errs.New(errs.Invalid, "username: expected 1 to 64 letters, digits, '.', '_', '@' and '-', a letter or digit first")
	}
	if hash == "" {
		return answer{}, errs.New(errs.Invalid, "password is required")
	}
	name := *edit.Username
	u, err := change(r.Context(), s, userRoot+name, func(u *user, exists bool) error {
		if exists {
			return refuse(http.StatusConflict, "user %s exists already", name)
		}
		*u = newUser(name)
		u.BuiltIn = builtIn(name)
		edit.apply(u, hash)
		return nil
	})
	if err != nil {
		return answer{}, err
	}
	s.cfg.Log.WithField("user", name).Info("created a user")
	return answer{http.StatusCreated, u.view()}, nil
}

// readUser reads and checks what a request says of a user, and hashes the password.
func (s *Service) readUser(r *http.Request) (edit userEdit, hash string, err error) {
	if err := readBody(r, &edit); err != nil {
		return edit, "", err
	}
	for field, text := range map[string]*string{"first_name": edit.FirstName, "last_name": edit.LastName} {
		if text != nil && (len(*text) > maxText || strings.ContainsFunc(*text, isControl)) {
			return edit, "", errs.New(errs.Invalid, "%s: expected at most %d bytes without control characters", field, maxText)
		}
	}
	if edit.Password != nil {
		hash, err = s.hasher.hash(r.Context(), *edit.Password)
	}
	return edit, hash, err
}

// apply changes a user. Another password, and being disabled, end the tokens there are. The
// first password of a user who had none lets the user in.
func (e userEdit) apply(u *user, hash string) {
	if e.FirstName != nil {
		u.FirstName = *e.FirstName
	}
	if e.LastName != nil {
		u.LastName = *e.LastName
	}
	if hash != "" {
		u.Disabled = u.Disabled && u.Password != ""
		u.Password, u.Session, u.Initial = hash, randomHex(8), false
	}
	if e.Disable != nil {
		u.Disabled = *e.Disable
	}
	if u.Disabled {
		u.Session = randomHex(8)
	}
}

// listUsers is GET local_users/.
func (s *Service) listUsers(*http.Request, identity.Identity) (answer, error) {
	views := []userView{}
	for _, u := range s.dir.allUsers() {
		views = append(views, u.view())
	}
	return answer{http.StatusOK, views}, nil
}

// isSelf reports whether a client is the local user of that name.
func isSelf(who identity.Identity, name string) bool {
	return who.Kind == identity.User && who.How == byPassword && who.Name == name
}

// getUser is GET local_users/{name}/.
func (s *Service) getUser(r *http.Request, who identity.Identity) (answer, error) {
	name := r.PathValue("name")
	if !who.IsAdmin() && !isSelf(who, name) {
		return answer{}, refuse(http.StatusForbidden, "%s is not allowed to see user %s", who, name)
	}
	u, ok := s.dir.user(name)
	if !ok {
		return answer{}, noUser(name)
	}
	return answer{http.StatusOK, u.view()}, nil
}

// updateUser is PATCH local_users/{name}/.
func (s *Service) updateUser(r *http.Request, who identity.Identity) (answer, error) {
	name := r.PathValue("name")
	if !who.IsAdmin() && !isSelf(who, name) {
		return answer{}, refuse(http.StatusForbidden, "%s is not allowed to change user %s", who, name)
	}
	edit, hash, err := s.readUser(r)
	switch {
	case err != nil:
		return answer{}, err
	case edit.Username != nil && *edit.Username != name:
		return answer{}, errs.New(errs.Invalid, "username: a user cannot be renamed")
	case edit.Disable != nil && !who.IsAdmin():
		return answer{}, refuse(http.StatusForbidden, "%s is not allowed to enable or disable users", who)
	}
	u, err := change(r.Context(), s, userRoot+name, func(u *user, exists bool) error {
		if !exists && !builtIn(name) {
			return noUser(name)
		}
		if !exists { // never made, or made with a key that is lost
			*u = newUser(name)
			u.BuiltIn = true
		}
		edit.apply(u, hash)
		return nil
	})
	if err == nil && name == builtInAdmin {
		err = s.keepAdmin(r, u)
	}
	if err != nil {
		return answer{}, err
	}
	s.cfg.Log.WithField("user", name).WithField("by", who.String()).Info("changed a user")
	return answer{http.StatusOK, u.view()}, nil
}

// keepAdmin gives the built-in admin its role, if it has lost it.
func (s *Service) keepAdmin(r *http.Request, u user) error {
	role := newAuthorization(authorization{Principal: u.Name, Local: true, UserID: u.ID, Role: identity.Admin})
	if _, ok := s.dir.authorization(role.UUID); ok {
		return nil
	}
	op, err := s.put(grantRoot+role.UUID, role)
	if err != nil {
		return err
	}
	return s.commit(r.Context(), objdb.Txn{Then: []objdb.Op{op}})
}

// deleteUser is DELETE local_users/{name}/. The user's roles and service tokens go as well.
func (s *Service) deleteUser(r *http.Request, who identity.Identity) (answer, error) {
	name := r.PathValue("name")
	if builtIn(name) {
		return answer{}, refuse(http.StatusBadRequest, "user %s is built in and cannot be deleted; it can be disabled", name)
	}
	u, ok := s.dir.user(name)
	if !ok {
		return answer{}, noUser(name)
	}
	// What is left behind, if there is too much for one transaction, belongs to an ID that
	// no other user will have.
	txn := objdb.Txn{If: []objdb.Cmp{objdb.Present(userRoot + name)}, Then: []objdb.Op{objdb.Delete(userRoot + name)}}
	for _, a := range s.dir.allAuthorizations() {
		if a.Local && a.UserID == u.ID && len(txn.Then) < maxTogether {
			txn.Then = append(txn.Then, objdb.Delete(grantRoot+a.UUID))
		}
	}
	for id, t := range s.dir.serviceTokens() {
		if t.UserID == u.ID && len(txn.Then) < maxTogether {
			txn.Then = append(txn.Then, objdb.Delete(tokenRoot+id))
		}
	}
	err := s.commit(r.Context(), txn)
	switch {
	case errs.Is(err, errs.Conflict):
		return answer{}, noUser(name)
	case err != nil:
		return answer{}, err
	}
	s.cfg.Log.WithField("user", name).WithField("by", who.String()).Info("deleted a user")
	return answer{status: http.StatusNoContent}, nil
}

// maxTogether is how many records are written in one transaction; every store takes that.
const maxTogether = 60
