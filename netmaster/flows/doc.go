// Package flows tells of the connections of the whole cluster. It keeps nothing: agents have
// logs of their own (docs/decisions/0036-see-and-explain.md), and are asked when somebody
// wants to know.
//
//	source   one agent, asked again when it was lost
//	backlog  what agents have recorded before the request, merged by time
//	joiner   two hosts see the two ends of a connection: one record is made of both
//	scope    what of a record is shown to whoever asks
//	tail     the newest records, if only so many are wanted
//
// A record is held back for at most hold until its second end is known. When that comes later
// the record is sent again, with the same ID.
package flows
