// Package contivmodel holds the objects a user configures Contiv with: tenants,
// networks, endpoint groups and the global settings, as they look in REST bodies and
// in the store. It knows how an object is written, named and checked; what creating
// or deleting one means is netmaster's business (netmaster/intent).
//
// Every kind of object is one file: its struct, whose members stand in the order they
// are written (key, fields in ASCII order, link-sets, links), its operational
// counterpart (…Oper), and a Kind value made by a function such as NetworkKind. Code
// that treats all kinds alike (REST routes, the client, the store) works on Kind.
//
// # Checks
//
// Kind.Decode reads a request body: it takes the key from the path, drops what only
// the server may set (links), fills defaults, and checks key and fields in the order
// of the struct. The first failure is the answer; its text is fixed outward surface:
//
//	Invalid Key
//	<field> string too long
//	<field> string invalid format
//	<field> Value Out of bound
package contivmodel
