// Package events tells clients what happens to the objects of the model, as it happens:
// GET /api/v1/watch, a stream of server-sent events (WHATWG HTML, section 9.2).
//
// Events come from the store, not from the leader: every netmaster watches the objects
// and serves its own clients, so a stream goes on while leaders change. Each event is
// named after what has happened and carries a contivmodel.Notice as JSON:
//
//	event: added
//	id: 812
//	data: {"event":"added","revision":812,"objects":[{"kind":"network","key":"default:web","object":{…}}]}
//
// Without anything to go on from, a stream begins with a reset: everything there is. The
// id is a store revision; a client that comes back with it, as Last-Event-ID or since,
// gets what has happened after it, if that is still remembered, or else a reset. Where
// several objects change in one transaction only the last event has the id, so that
// nobody goes on from the middle of it. A comment or a bare id every few seconds shows
// that the stream lives.
//
// What is remembered is bounded and shared by all clients; none has a queue of its own.
// A client that reads too slowly finds its place gone and gets a reset. One that does
// not read at all is cut off.
package events
