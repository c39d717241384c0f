// Package intent is what a leading netmaster decides with: it turns requests (create
// this network, give this container an address) into records in the store.
//
// # One writer
//
// All changes go through one goroutine, the writer. A change is a plan: a function
// that checks the request against the model in memory and says, by puts and deletes
// on the model's tables, what the store shall hold afterwards. The tables keep what a
// plan says in an overlay; the writer turns the overlay into one store transaction,
// and only when that is committed merges the overlay into the tables that everybody
// reads. A plan that fails leaves nothing behind, and no reader ever sees a change
// that the store does not hold.
//
// Plans that arrive while a transaction is under way share the next one: each sees
// what those before it have planned, so two of them cannot take the same address. If
// the shared transaction is refused they are tried again one by one.
//
// A change that is larger than a store transaction is written down first, decided by
// one small transaction, and then carried out, by the next leader if need be (large.go).
//
// # Fences
//
// Every transaction compares two things. The leader's fence holds only while this
// term lasts, so what a former leader still writes fails as a whole. The commit
// mark, a key that each transaction of a term sets to the next number and expects at
// the last one, makes a transaction safe to send again: if the store does not say
// whether it was applied, the writer sends the same one until the answer is either
// success, or a refusal together with a mark that tells whether it had been applied.
// Nothing is guessed.
//
// # What is stored, what is counted
//
// Stored: the objects as the user gave them with their links to what they stand on,
// the records agents realise, and one small claim for each address, tag and group id
// in use. Not stored, but derived: the links from a tenant or network to what stands
// on it, numbers of endpoints and addresses, tags in use. So a parent is not written
// when a child comes, and the two cannot disagree.
//
// Stored although they follow from other records, because agents read them: the rules
// that agents enforce (from rules and groups) and the providers of services (from
// labels of endpoints). They are written in the transaction that changes what they
// follow from, and a new leader computes them again and puts right what differs.
//
// # Kinds
//
// Each kind of object has a file with its rules (tenant.go, network.go …) and a
// constructor of its Collection, the generic face that REST serves.
package intent
