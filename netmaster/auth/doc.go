// Package auth finds out whose token a request carries, and serves the login API of the
// original's auth_proxy below /api/v1/auth_proxy/: users, their roles, service tokens, LDAP,
// OIDC and Kubernetes ServiceAccounts.
//
// All records are in the store below state.AuthRoot. Every netmaster mirrors them by one
// watch, so that it checks a token by itself, and looks up what its owner may do at each
// request: a role that is taken away, a user that is disabled and a logout count at once.
//
//	users/<name>              a local user, with the hash of the password
//	authorizations/<uuid>     a role for a principal
//	tokens/<id>               a service token (its hash), or a login that was ended early
//	ldap, oidc                where other users come from, with sealed secrets
//
// A principal is the name of a local user, the DN of a group in LDAP, "oidc:" and a group of
// the OIDC provider, or the user or group that Kubernetes names for a ServiceAccount
// ("system:serviceaccount:NAMESPACE:NAME"). The four cannot be taken for each other.
package auth
