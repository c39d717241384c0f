// Package join gets the agent of a host its certificate, and keeps it fresh.
//
// An agent that has none on disk asks a netmaster for one: by a join token, which pins the
// cluster's authority by its hash; in Kubernetes by its pod's ServiceAccount token; or, on a
// netmaster's own host, as root by the unix socket. After that it renews the certificate by
// itself, and follows the authority when that is rotated.
package join
