package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
)

// document is the part of OpenAPI 3.1 that is used here.
type document struct {
	OpenAPI    string              `json:"openapi"`
	Info       info                `json:"info"`
	Paths      map[string]pathItem `json:"paths"`
	Components components          `json:"components"`

	types map[string]reflect.Type // by their names in Components.Schemas
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
	Format               string             `json:"format,omitempty"`
	Pattern              string             `json:"pattern,omitempty"`
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
	Immutable            bool               `json:"x-contiv-immutable,omitempty"` // cannot change after the object has been created
	Refers               string             `json:"x-contiv-refers-to,omitempty"` // type of the objects that the value names
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
		Paths: map[string]pathItem{}, types: map[string]reflect.Type{},
		Components: components{
			Schemas: map[string]*schema{},
			Responses: map[string]response{
				"Refused":     text("The request is not valid, names what does not exist, or is against a rule; one line says why."),
				"Unavailable": text("No leader or no store at the moment; the same request may succeed later."),
			},
		},
	}
	for _, kind := range contivmodel.Kinds() {
		add(d, kind)
	}
	d.Paths["/api/v1/inspect/"+contivmodel.EndpointCollection+"/{key}/"] = pathItem{
		Parameters: []parameter{key("an endpoint's id, its container's id or name, or a part of one")},
		Get: &operation{
			OperationID: "inspectEndpoint", Summary: "Find an endpoint", Tags: []string{contivmodel.EndpointType},
			Responses: answers("The endpoint", d.ref(reflect.TypeFor[contivmodel.EndpointInspection]())),
		},
	}
	d.Paths["/api/v1/watch/"] = watch()
	d.Paths["/api/v1/changes/"] = changes(d)
	clusterPaths(d)
	explainPaths(d)
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

// add describes one kind: its paths and the fields of its objects.
func add(d *document, kind contivmodel.AnyKind) {
	about := kind.Description()
	objectType, operType := kind.GoTypes()
	name := d.nameOf(objectType)
	object := d.ref(objectType)
	for _, f := range about.Fields {
		describe(d.Components.Schemas[name], f)
	}
	do := func(verb, summary string, result *schema) *operation {
		return &operation{OperationID: verb + name, Summary: summary, Tags: []string{about.Type}, Responses: answers("Done", result)}
	}
	put := func(verb string) *operation {
		o := do(verb, "Create or update one "+about.Type, object)
		o.RequestBody = &body{Required: true, Content: map[string]media{"application/json": {object}}}
		return o
	}
	d.Paths["/api/v1/"+about.Collection+"/"] = pathItem{
		Get: do("list", "List all objects of type "+about.Type+", sorted by key", &schema{Type: "array", Items: object}),
	}
	keys := []parameter{key("what identifies the object: " + keyForm(about))}
	d.Paths["/api/v1/"+about.Collection+"/{key}/"] = pathItem{
		Parameters: keys,
		Get:        do("get", "Return one "+about.Type, object),
		Post:       put("post"),
		Put:        put("put"),
		Delete:     do("delete", "Delete one "+about.Type, &schema{Type: "string", Description: "the key"}),
	}
	inspection := &schema{Type: "object", Properties: map[string]*schema{"Config": object}}
	if operType != reflect.TypeFor[contivmodel.NoOper]() {
		inspection.Properties["Oper"] = d.ref(operType)
	}
	d.Paths["/api/v1/inspect/"+about.Collection+"/{key}/"] = pathItem{
		Parameters: keys, Get: do("inspect", "Return one "+about.Type+" with what is in use by it", inspection),
	}
}

// describe adds what is known of a field to its property in the schema of an object.
func describe(object *schema, f contivmodel.Field) {
	p := object.Properties[f.Name]
	p.Description, p.Format, p.Default, p.Immutable, p.Refers = f.Text, f.Format, f.Default, f.Immutable, f.Refers
	switch {
	case f.Values != nil && !f.Required && f.Default == nil:
		p.Enum = append([]string{""}, f.Values...)
	case f.Values != nil:
		p.Enum = f.Values
	case f.Pattern != "" && !f.Required:
		p.MaxLength, p.Pattern = f.MaxBytes, "^$|"+f.Pattern
	default:
		p.MaxLength, p.Pattern = f.MaxBytes, f.Pattern
	}
	if f.Type == contivmodel.NumberField {
		p.Minimum, p.Maximum = &f.Low, &f.High
	}
	if f.Type == contivmodel.ListField && f.Required {
		p.MinItems = 1
	}
	if f.Required {
		object.Required = append(object.Required, f.Name)
	}
}

// keyForm says what the key of a kind is made of.
func keyForm(about contivmodel.Description) string {
	if f, ok := about.Field(about.Names[0]); ok && len(about.Names) == 1 && len(f.Values) == 1 {
		return "always \"" + f.Values[0] + "\""
	}
	return strings.Join(about.Names, ":")
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
