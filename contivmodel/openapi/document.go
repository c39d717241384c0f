package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
)

// document is the part of OpenAPI 3.1 that is used here.
type document struct {
	OpenAPI    string              `json:"openapi"`
	Info       info                `json:"info"`
	Paths      map[string]pathItem `json:"paths"`
	Components components          `json:"components"`
}

type info struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Version     string `json:"version"`
}

type pathItem struct {
	Parameters []parameter `json:"parameters,omitempty"`
	Get        *operation  `json:"get,omitempty"`
	Post       *operation  `json:"post,omitempty"`
	Put        *operation  `json:"put,omitempty"`
	Delete     *operation  `json:"delete,omitempty"`
}

type parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Required    bool    `json:"required"`
	Description string  `json:"description"`
	Schema      *schema `json:"schema"`
}

type operation struct {
	OperationID string              `json:"operationId"`
	Summary     string              `json:"summary"`
	Tags        []string            `json:"tags"`
	RequestBody *body               `json:"requestBody,omitempty"`
	Responses   map[string]response `json:"responses"`
}

type body struct {
	Required bool             `json:"required"`
	Content  map[string]media `json:"content"`
}

type response struct {
	Ref         string           `json:"$ref,omitempty"`
	Description string           `json:"description,omitempty"`
	Content     map[string]media `json:"content,omitempty"`
}

type media struct {
	Schema *schema `json:"schema"`
}

type components struct {
	Schemas   map[string]*schema  `json:"schemas"`
	Responses map[string]response `json:"responses"`
}

// schema is JSON Schema as OpenAPI 3.1 has it.
type schema struct {
	Ref                  string             `json:"$ref,omitempty"`
	Type                 string             `json:"type,omitempty"`
	Description          string             `json:"description,omitempty"`
	ReadOnly             bool               `json:"readOnly,omitempty"`
	Enum                 []string           `json:"enum,omitempty"`
	MaxLength            int                `json:"maxLength,omitempty"`
	Minimum              *int               `json:"minimum,omitempty"`
	Maximum              *int               `json:"maximum,omitempty"`
	Default              any                `json:"default,omitempty"`
	Items                *schema            `json:"items,omitempty"`
	MinItems             int                `json:"minItems,omitempty"`
	MaxItems             int                `json:"maxItems,omitempty"`
	Properties           map[string]*schema `json:"properties,omitempty"`
	AdditionalProperties *schema            `json:"additionalProperties,omitempty"`
	Required             []string           `json:"required,omitempty"`
}

// JSON returns the document, indented, with a final newline. It is the same at every
// call.
func JSON() ([]byte, error) {
	text, err := json.MarshalIndent(build(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	return append(text, '\n'), nil
}

func build() *document {
	text := func(what string) response {
		return response{Description: what, Content: map[string]media{"text/plain": {&schema{Type: "string"}}}}
	}
	d := &document{
		OpenAPI: "3.1.0",
		Info: info{
			Title: "Contiv", Version: "v1",
			Description: "Objects of the network model. The trailing slash of paths may be left out. POST and PUT are the same: " +
				"they create an object, or update the one with that key. What is marked readOnly is set by the server and ignored in requests.",
		},
		Paths: map[string]pathItem{},
		Components: components{
			Schemas: map[string]*schema{},
			Responses: map[string]response{
				"Refused":     text("The request is not valid, names what does not exist, or is against a rule; one line says why."),
				"Unavailable": text("No leader or no store at the moment; the same request may succeed later."),
			},
		},
	}
	add(d, contivmodel.AciGwKind())
	add(d, contivmodel.AppProfileKind())
	add(d, contivmodel.BgpKind())
	add(d, contivmodel.EndpointGroupKind())
	add(d, contivmodel.ExtContractsGroupKind())
	add(d, contivmodel.GlobalKind())
	add(d, contivmodel.NetprofileKind())
	add(d, contivmodel.NetworkKind())
	add(d, contivmodel.PolicyKind())
	add(d, contivmodel.RuleKind())
	add(d, contivmodel.ServiceLBKind())
	add(d, contivmodel.TenantKind())
	add(d, contivmodel.VolumeKind())
	add(d, contivmodel.VolumeProfileKind())
	d.Paths["/api/v1/inspect/"+contivmodel.EndpointCollection+"/{key}/"] = pathItem{
		Parameters: []parameter{key("an endpoint's id, its container's id or name, or a part of one")},
		Get: &operation{
			OperationID: "inspectEndpoint", Summary: "Find an endpoint", Tags: []string{contivmodel.EndpointType},
			Responses: answers("The endpoint", d.ref(reflect.TypeFor[contivmodel.EndpointInspection]())),
		},
	}
	d.Paths["/api/v1/watch/"] = watch()
	clusterPaths(d)
	return d
}

// watch describes the stream of events.
func watch() pathItem {
	in := func(where, name, what string, s *schema) parameter {
		return parameter{Name: name, In: where, Description: what, Schema: s}
	}
	return pathItem{
		Parameters: []parameter{
			in("query", "kind", "only objects of these types; may be given several times, or as a list with commas", &schema{
				Type: "array", Items: &schema{Type: "string", Enum: contivmodel.Types()},
			}),
			in("query", "since", "go on after the event with this id", &schema{Type: "integer"}),
			in("header", "Last-Event-ID", "the same; counts more than since", &schema{Type: "integer"}),
		},
		Get: &operation{
			OperationID: "watch", Summary: "Follow what happens to objects", Tags: []string{"events"},
			Responses: map[string]response{
				"200": {
					Description: "Server-sent events: reset with all there is, then added, changed and removed with one object each. The data " +
						"of an event is JSON with event, revision (the same as the id) and objects, each with kind, key and object. A client " +
						"that comes back with the last id it got misses nothing: it is told what has happened since, or gets a reset.",
					Content: map[string]media{"text/event-stream": {&schema{Type: "string"}}},
				},
				"500": {Ref: "#/components/responses/Refused"},
				"503": {Ref: "#/components/responses/Unavailable"},
			},
		},
	}
}

// add describes the paths of one kind.
func add[T, O any](d *document, kind contivmodel.Kind[T, O]) {
	name := reflect.TypeFor[T]().Name()
	object := d.ref(reflect.TypeFor[T]())
	known := constraints(kind.Type)
	for _, field := range slices.Sorted(maps.Keys(known)) {
		if s := d.Components.Schemas[name].Properties[field]; s != nil {
			known[field].apply(d.Components.Schemas[name], s, field)
		}
	}
	do := func(verb, summary string, result *schema) *operation {
		return &operation{OperationID: verb + name, Summary: summary, Tags: []string{kind.Type}, Responses: answers("Done", result)}
	}
	put := func(verb string) *operation {
		o := do(verb, "Create or update one "+kind.Type, object)
		o.RequestBody = &body{Required: true, Content: map[string]media{"application/json": {object}}}
		return o
	}
	d.Paths["/api/v1/"+kind.Collection+"/"] = pathItem{
		Get: do("list", "List all objects of type "+kind.Type+", sorted by key", &schema{Type: "array", Items: object}),
	}
	keys := []parameter{key("what identifies the object: " + keyForm(kind.Type))}
	d.Paths["/api/v1/"+kind.Collection+"/{key}/"] = pathItem{
		Parameters: keys,
		Get:        do("get", "Return one "+kind.Type, object),
		Post:       put("post"),
		Put:        put("put"),
		Delete:     do("delete", "Delete one "+kind.Type, &schema{Type: "string", Description: "the key"}),
	}
	inspection := &schema{Type: "object", Properties: map[string]*schema{"Config": object}}
	if oper := reflect.TypeFor[O](); oper != reflect.TypeFor[contivmodel.NoOper]() {
		inspection.Properties["Oper"] = d.ref(oper)
	}
	d.Paths["/api/v1/inspect/"+kind.Collection+"/{key}/"] = pathItem{
		Parameters: keys, Get: do("inspect", "Return one "+kind.Type+" with what is in use by it", inspection),
	}
}

func key(what string) parameter {
	return parameter{Name: "key", In: "path", Required: true, Description: what, Schema: &schema{Type: "string"}}
}

func answers(what string, result *schema) map[string]response {
	return map[string]response{
		"200": {Description: what, Content: map[string]media{"application/json": {result}}},
		"500": {Ref: "#/components/responses/Refused"},
		"503": {Ref: "#/components/responses/Unavailable"},
	}
}

// ref returns a reference to the schema of a struct type, which it adds if it is new.
func (d *document) ref(t reflect.Type) *schema {
	if _, known := d.Components.Schemas[t.Name()]; !known {
		s := &schema{Type: "object", Properties: map[string]*schema{}}
		d.Components.Schemas[t.Name()] = s
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			p := d.schemaOf(t.Field(i).Type)
			p.ReadOnly = name == "key" || name == "links" || name == "link-sets"
			s.Properties[name] = p
		}
	}
	return &schema{Ref: "#/components/schemas/" + t.Name()}
}

func (d *document) schemaOf(t reflect.Type) *schema {
	switch t.Kind() {
	case reflect.Struct:
		return d.ref(t)
	case reflect.Slice:
		return &schema{Type: "array", Items: d.schemaOf(t.Elem())}
	case reflect.Array:
		return &schema{Type: "array", Items: d.schemaOf(t.Elem()), MinItems: t.Len(), MaxItems: t.Len()}
	case reflect.Map:
		return &schema{Type: "object", AdditionalProperties: d.schemaOf(t.Elem())}
	case reflect.Int, reflect.Int64:
		return &schema{Type: "integer"}
	default:
		return &schema{Type: "string"}
	}
}
