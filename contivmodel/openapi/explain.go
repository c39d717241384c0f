package openapi

import (
	"reflect"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/state/traceapi"
)

// changes describes the past of objects.
func changes(d *document) pathItem {
	kind := query("kind", "only objects of these types; may be given several times, or as a list with commas")
	kind.Schema = &schema{Type: "array", Items: &schema{Type: "string", Enum: contivmodel.Types()}}
	return pathItem{
		Parameters: []parameter{
			kind, query("since", "only later ones; RFC 3339"), query("limit", "how many of the newest; 1000 if not given, 10000 at most"),
		},
		Get: &operation{
			OperationID: "changes", Summary: "Show what has happened to objects", Tags: []string{"events"},
			Responses: answers("What has happened, as far as this netmaster remembers", d.ref(reflect.TypeFor[contivmodel.Changes]())),
		},
	}
}

// connection is the parameters that say which connection a question is about.
func connection() []parameter {
	return []parameter{
		query(traceapi.QueryFrom, "an endpoint: its id, (part of) its container's id or name, or its address"),
		query(traceapi.QueryTo, "the same, or any address"),
		query(traceapi.QueryTenant, "where endpoints are looked for by address; every tenant if not given"),
		query(traceapi.QueryProto, "icmp, tcp, udp or sctp; tcp if a port is given, else icmp"),
		query(traceapi.QueryPort, "the port of the receiver, 1 to 65535"),
		query(traceapi.QueryFamily, "4 or 6"),
	}
}

// explainPaths describes the requests about connections and about what is wrong.
func explainPaths(d *document) {
	get := func(id, summary string, ok map[string]response) *operation {
		return &operation{OperationID: id, Summary: summary, Tags: []string{"connections"}, Responses: ok}
	}
	d.Paths[traceapi.PathMaster] = pathItem{
		Parameters: connection(),
		Get:        get("trace", "Ask the switches for the way of a packet", answers("The way, hop by hop", d.ref(reflect.TypeFor[traceapi.Trace]()))),
	}
	d.Paths[flowapi.PathExplain] = pathItem{
		Parameters: connection(),
		Get:        get("explain", "Say whether a connection is allowed, and why, from the objects", answers("What decides", d.ref(reflect.TypeFor[flowapi.Explanation]()))),
	}
	stream := answers("JSON lines: records of connections, what the log has left out, hosts that do not answer, and heartbeats", d.ref(reflect.TypeFor[flowapi.Event]()))
	ok := stream["200"]
	stream["200"] = response{Description: ok.Description, Content: map[string]media{"application/x-ndjson": ok.Content["application/json"]}}
	d.Paths[flowapi.PathMaster] = pathItem{Parameters: filter(), Get: get("flows", "Show connections of the past hour, and follow them", stream)}
	d.Paths[flowapi.PathHits] = pathItem{
		Parameters: []parameter{query("tenant", "only rules of this tenant")},
		Get:        get("hits", "Say how often each rule has decided", answers("The rules", d.ref(reflect.TypeFor[flowapi.HitsAnswer]()))),
	}
	preview := get("preview", "Say what a change would have done to the connections of the past", answers("What it would have done", d.ref(reflect.TypeFor[flowapi.Preview]())))
	preview.RequestBody = &body{Required: true, Content: map[string]media{"application/json": {d.ref(reflect.TypeFor[flowapi.PreviewRequest]())}}}
	d.Paths[flowapi.PathPreview] = pathItem{Post: preview}

	d.Paths[doctorapi.PathMaster] = pathItem{Get: &operation{
		OperationID: "doctor", Summary: "Say what is wrong in the cluster", Tags: []string{"cluster"},
		Responses: answers("What is wrong, the worst first", d.ref(reflect.TypeFor[doctorapi.Report]())),
	}}
	archive := answers("A tar archive, compressed by gzip", nil)
	archive["200"] = response{Description: archive["200"].Description, Content: map[string]media{"application/gzip": {&schema{Type: "string", Format: "binary"}}}}
	d.Paths[doctorapi.PathSupport] = pathItem{
		Parameters: []parameter{query(doctorapi.QuerySize, "how large the files may be together before compression, in bytes")},
		Get:        &operation{OperationID: "supportBundle", Summary: "Collect what support needs, without secrets", Tags: []string{"cluster"}, Responses: archive},
	}
}

// filter is the parameters that select records of connections.
func filter() []parameter {
	return []parameter{
		query("tenant", "only these tenants; may be given several times"),
		query("from", "who opens the connection: (part of) a name, an endpoint's id, a group, an address or a prefix"),
		query("to", "who is asked; the same"),
		query("either", "true: from and to may be the other way round"),
		query("verdict", "allowed, or denied, which rejected ones are, too"),
		query("rule", "(part of) a policy's name, or policy/rule, that has decided"),
		query("proto", "the protocol"),
		query("port", "the port of the receiver"),
		query("host", "only what this host has recorded"),
		query("since", "only what has ended later, or is open; RFC 3339"),
		query("until", "only what has begun earlier; RFC 3339"),
		query("follow", "true: go on with what comes"),
		query("limit", "how many of the newest"),
	}
}
