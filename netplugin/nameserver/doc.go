// Package nameserver tells containers the addresses of services, groups and other
// containers of their own tenant.
//
// It follows the endpoint and service records of the store in Names, an index whose
// look-ups cost the same for ten endpoints and ten thousand. Server answers messages
// from it. The datapath hands it every query that a container of this host sends by UDP,
// whatever server it is for, and what containers send by TCP to the addresses of the
// agent itself:
//
//	the name is known in the tenant   the answer, authoritative; without a record of the
//	                                  type asked for, an empty one
//	it is below our domain            the same, or NXDOMAIN
//	anything else                     goes on to the server it is for; a query for the
//	                                  agent's own address is asked of the host's resolvers
//
// A name is known as it is, and as NAME.DOMAIN and NAME.TENANT.DOMAIN. What it may be,
// the first table with an address of the family asked for deciding: a service, a group,
// a container's name, a container's id (of one that is too long for a label the first twelve
// characters), an endpoint's id.
// Addresses have names too (PTR). No tenant learns anything of another.
//
// Of a name with many addresses an answer holds ten, in turn.
package nameserver
