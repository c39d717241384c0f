// Package authz decides which requests an identity may send. The rules are data: one table
// of path, methods and what is needed (rules.go), made from the kinds of the object model.
// A request that no rule covers is for admins.
//
// A Gate stands before everything that netmaster serves and refuses what is not allowed:
// 400 to whoever has no identity and needs one, 403 to everybody else, with one line that
// says what is needed. What only the contents of an answer can decide (a list, a watch, the
// endpoint that a search finds) is filtered by the handlers, with Sees and Visible; what
// only the stored object can decide (the host of an endpoint, an infra network) is decided
// in netmaster/intent. Both look at the identity in the request's context.
//
// An object of a tenant that an identity may not see is refused whether it exists or not.
package authz
