// Package ca is the certificate authority of a cluster, on the disk of every netmaster.
//
// A bundle (file ca.json in the TLS folder, mode 0600) has the authority that signs, the
// former ones that still count, and the cluster's master keys, from which other packages
// derive theirs. The first netmaster makes it; a further one gets it from another one, where
// both prove over TLS that they know the cluster's secret; later on netmasters keep in step
// by their certificates.
//
// In the store there are records without secrets: join tokens (their hash), who has which
// certificate and what is revoked, and which authority is the current one. The store can
// therefore start a look at another netmaster, but never give anybody a certificate.
//
// A rotation makes a new authority, which the old one signs as well: everybody sends that
// certificate along, so that who believes only one of the two believes everybody.
package ca
