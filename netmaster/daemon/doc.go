// Package daemon is the frame of netmaster: it elects a leader among the netmasters
// of a cluster, keeps the API listeners open whoever leads, and hands requests to the
// Controller of the leader, in this process or, by a reverse proxy, in another one.
//
// The store lock netmaster/leader decides who leads; its value is the address under
// which the holder is reached. A term has a context: when the lock is lost, or can
// no longer be confirmed, the context ends, requests go to the new leader, and
// whatever the old Controller still writes fails because every transaction of a
// term compares that term's fence.
package daemon
