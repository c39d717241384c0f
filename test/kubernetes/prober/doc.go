// Package prober tells who can reach whom in a cluster, quickly.
//
// A Server in each pod answers on ports of TCP and UDP with the name of its pod, and does
// what a Client on the other side of a Unix socket says: ask many targets at once, hold
// connections open. The socket lies in a directory that the pods and the test share, so
// no policy of the network is in its way.
package prober
