// Package docknet is netmaster's part in the docker networks of a cluster in mode docker.
// Where every agent makes those of its own Engine, requests wait until they have (Hosts).
// Where the Engines share networks through a store of theirs, netmaster makes them
// (Shared), and notes them for the agents.
package docknet
