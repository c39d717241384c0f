// Package dockplugin connects a Docker Engine to Contiv. The life of an endpoint is that of
// mgmtfn/endpoint; this adds docker networks, address pools and swarms, in these parts.
//
// The Server answers the Engine's calls on a unix socket: as a network driver and as an
// IPAM driver. A call never calls back into the Engine, which holds locks meanwhile; it
// works from what the agent knows, from the docker networks noted in the store, and with
// netmaster, all within a deadline. The socket is there as soon as the agent is, and
// goes with it.
//
// The networks part keeps the Engine's docker networks equal to Contiv's networks and
// groups, by difference.
//
// The containers part tells netmaster the labels and names of the containers that run.
//
// The collector removes endpoints whose containers are gone.
package dockplugin
