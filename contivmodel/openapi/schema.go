package openapi

import (
	"encoding"
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"time"
)

// ref returns a reference to the schema of a struct type, which it adds if it is new.
func (d *document) ref(t reflect.Type) *schema {
	name := d.nameOf(t)
	if _, known := d.Components.Schemas[name]; !known {
		s := &schema{Type: "object", Properties: map[string]*schema{}}
		d.Components.Schemas[name] = s
		for _, f := range reflect.VisibleFields(t) {
			if f.Anonymous {
				continue // its members follow
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			p := d.schemaOf(f.Type)
			p.ReadOnly = name == "key" || name == "links" || name == "link-sets"
			s.Properties[name] = p
		}
	}
	return &schema{Ref: "#/components/schemas/" + name}
}

// nameOf is the name of a struct type, with its package if another type has the name already.
func (d *document) nameOf(t reflect.Type) string {
	for _, name := range []string{t.Name(), path.Base(t.PkgPath()) + "." + t.Name()} {
		owner, taken := d.types[name]
		if !taken {
			d.types[name] = t
		}
		if !taken || owner == t {
			return name
		}
	}
	return t.String()
}

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
	textType = reflect.TypeFor[encoding.TextMarshaler]()
)

func (d *document) schemaOf(t reflect.Type) *schema {
	switch {
	case t == timeType:
		return &schema{Type: "string", Format: "date-time"}
	case t == rawType:
		return &schema{Type: "object"}
	case t.Implements(textType):
		return &schema{Type: "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schemaOf(t.Elem())
	case reflect.Struct:
		return d.ref(t)
	case reflect.Slice:
		return &schema{Type: "array", Items: d.schemaOf(t.Elem())}
	case reflect.Array:
		return &schema{Type: "array", Items: d.schemaOf(t.Elem()), MinItems: t.Len(), MaxItems: t.Len()}
	case reflect.Map:
		return &schema{Type: "object", AdditionalProperties: d.schemaOf(t.Elem())}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number"}
	case reflect.String:
		return &schema{Type: "string"}
	default:
		return &schema{Type: "integer"}
	}
}
