package openapi

import (
	"reflect"

	"github.com/contiv/netplugin/state/clusterapi"
)

// query is a parameter of a request's query string.
func query(name, what string) parameter {
	return parameter{Name: name, In: "query", Description: what, Schema: &schema{Type: "string"}}
}

// clusterPaths describes the requests about hosts.
func clusterPaths(d *document) {
	get := func(id, summary, what string, result *schema) *operation {
		return &operation{OperationID: id, Summary: summary, Tags: []string{"cluster"}, Responses: answers(what, result)}
	}
	d.Paths[clusterapi.PathCluster] = pathItem{
		Get: get("cluster", "Show the hosts and what they have applied", "The hosts, sorted by label", d.ref(reflect.TypeFor[clusterapi.Cluster]())),
	}
	d.Paths[clusterapi.PathApplied] = pathItem{
		Parameters: []parameter{
			query(clusterapi.QueryRevision, "the store revision of a change, as its answer's X-Contiv-Revision says"),
			query(clusterapi.QuerySettings, "that of a change of the global settings, as X-Contiv-Settings-Revision says"),
			query(clusterapi.QueryWait, "how long to wait until all live hosts have applied the change, for example 5s; at most "+clusterapi.MaxWait.String()),
		},
		Get: get("applied", "Say which live hosts have not applied a change", "Those that have not", d.ref(reflect.TypeFor[clusterapi.Applied]())),
	}
	gone := &schema{Type: "array", Items: d.ref(reflect.TypeFor[clusterapi.GoneHost]())}
	d.Paths[clusterapi.PathGarbage] = pathItem{
		Parameters: []parameter{
			query(clusterapi.QueryHost, "only this host"),
			query(clusterapi.QueryOlder, "only hosts that have been down for that long; "+clusterapi.DefaultOlder.String()+" if not given"),
		},
		Get:  get("listGarbage", "List what is left of hosts that are gone", "The hosts and their endpoints", gone),
		Post: get("collectGarbage", "Remove what is left of hosts that are gone", "What was removed", gone),
	}
}
