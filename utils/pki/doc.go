// Package pki is the certificates of a cluster: the authority that netmasters share, the
// certificate that every daemon has from it and renews, and the TLS settings made of both.
//
// A certificate says who its owner is by its common name (a host label, or the address of a
// netmaster) and what by its organizational unit (Unit). All keys are ECDSA P-256; a
// certificate is for both ends of a connection. Servers are not known by DNS names: a client
// that knows the cluster's roots accepts the certificate of a unit that it expects.
package pki
