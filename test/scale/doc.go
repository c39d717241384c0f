// Command scale measures a cluster of many hosts on one machine: a real netmaster with its
// store, and agents in a few processes. A light agent has the real watch of the state, the
// registration and the reports of an agent, and notes when it has seen a revision. A full one
// has, besides, everything between the store and the OpenFlow channel: joining records, the
// compiler of all layers, the bridges' desired and actual flows, the index of names, and the names of the flow
// log. Its switch takes every change at once, and keeps nothing but counts.
//
// It prints its figures as tables, and writes them to docs/scale.md. No figure fails a run.
package main
