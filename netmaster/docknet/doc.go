// Package docknet manages the docker networks of a cluster in mode docker. If every agent
// makes those of its own Engine, requests wait until they have (Hosts). If the Engines
// share networks through a store of their own, netmaster makes them (Shared), and records
// them for the agents.
package docknet
