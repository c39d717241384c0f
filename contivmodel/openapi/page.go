package openapi

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
)

//go:embed page
var pageFiles embed.FS

// Asset returns a file that the page refers to as /docs/NAME; ok is false if there is
// none.
func Asset(name string) (content []byte, ok bool) {
	content, err := fs.ReadFile(pageFiles, "page/"+name)
	return content, err == nil && name != "page.html"
}

// Page returns the document as an HTML page for people. It refers to nothing but its
// assets, and to paths of the same server.
func Page() ([]byte, error) {
	t, err := template.New("page.html").Funcs(template.FuncMap{
		"refName": func(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] },
	}).ParseFS(pageFiles, "page/page.html")
	if err != nil {
		return nil, fmt.Errorf("read the template of the API's page: %w", err)
	}
	var text bytes.Buffer
	if err := t.Execute(&text, newPage(build())); err != nil {
		return nil, fmt.Errorf("write the API's page: %w", err)
	}
	return text.Bytes(), nil
}

// page is the document in the order in which people read it.
type page struct {
	OpenAPI string
	Info    info
	Groups  []group
	Schemas []namedSchema
}

// group is the operations on one kind of objects.
type group struct {
	Name       string
	Operations []shownOperation
}

type shownOperation struct {
	Method, Path, Summary string
	Parameters            []parameter
	Body                  *schema
	Answers               []answer
}

type answer struct {
	Status, Meaning string
	Schema          *schema
}

type namedSchema struct {
	Name    string
	Members []member
}

type member struct {
	Name   string
	Schema *schema
	Limits string
}

func newPage(d *document) *page {
	p := &page{OpenAPI: d.OpenAPI, Info: d.Info}
	groups := map[string][]shownOperation{}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		item := d.Paths[path]
		for _, o := range []struct {
			method string
			op     *operation
		}{{http.MethodGet, item.Get}, {http.MethodPost, item.Post}, {http.MethodPut, item.Put}, {http.MethodDelete, item.Delete}} {
			if o.op != nil {
				groups[o.op.Tags[0]] = append(groups[o.op.Tags[0]], d.show(o.method, path, item.Parameters, o.op))
			}
		}
	}
	for _, name := range sortedFold(groups) {
		p.Groups = append(p.Groups, group{Name: name, Operations: groups[name]})
	}
	for _, name := range sortedFold(d.Components.Schemas) {
		p.Schemas = append(p.Schemas, namedSchema{Name: name, Members: members(d.Components.Schemas[name])})
	}
	return p
}

// sortedFold returns keys in alphabetical order without regard to case.
func sortedFold[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
}

func (d *document) show(method, path string, parameters []parameter, o *operation) shownOperation {
	s := shownOperation{Method: method, Path: path, Summary: o.Summary, Parameters: parameters}
	if o.RequestBody != nil {
		s.Body = o.RequestBody.Content["application/json"].Schema
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		r := o.Responses[status]
		if r.Ref != "" {
			r = d.Components.Responses[strings.TrimPrefix(r.Ref, "#/components/responses/")]
		}
		a := answer{Status: status, Meaning: r.Description}
		for _, m := range r.Content {
			a.Schema = m.Schema
		}
		s.Answers = append(s.Answers, a)
	}
	return s
}

func members(s *schema) []member {
	var all []member
	for _, name := range sortedFold(s.Properties) {
		p := s.Properties[name]
		all = append(all, member{Name: name, Schema: p, Limits: limits(p, slices.Contains(s.Required, name))})
	}
	return all
}

// limits says in words what a value must be.
func limits(s *schema, required bool) string {
	var says []string
	if required {
		says = append(says, "required")
	}
	if s.ReadOnly {
		says = append(says, "set by the server")
	}
	if len(s.Enum) > 0 {
		says = append(says, "one of "+strings.Join(quoted(s.Enum), ", "))
	}
	if s.MaxLength > 0 {
		says = append(says, fmt.Sprintf("at most %d bytes", s.MaxLength))
	}
	if s.Minimum != nil && s.Maximum != nil {
		says = append(says, fmt.Sprintf("%d to %d", *s.Minimum, *s.Maximum))
	}
	if s.Format != "" {
		says = append(says, s.Format)
	}
	if s.Refers != "" {
		says = append(says, "name of an object of type "+s.Refers)
	}
	if s.Default != nil {
		says = append(says, fmt.Sprintf("default %v", s.Default))
	}
	if s.Immutable {
		says = append(says, "cannot be changed later")
	}
	return strings.Join(says, "; ")
}

func quoted(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		if out[i] = w; w == "" {
			out[i] = "nothing"
		}
	}
	return out
}
