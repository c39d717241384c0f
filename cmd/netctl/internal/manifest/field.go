package manifest

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// field is a member of an object: a text, a number or a list of texts.
type field struct {
	name  string
	value reflect.Value
}

// server are the members that only the server sets.
func server(name string) bool { return name == "key" || name == "links" || name == "link-sets" }

// fieldsOf returns the members that users set, in the order of the API.
func fieldsOf(obj any) []field {
	v := reflect.ValueOf(obj).Elem()
	var all []field
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if !server(name) {
			all = append(all, field{name, v.Field(i)})
		}
	}
	return all
}

// empty reports whether a field says nothing.
func (f field) empty() bool {
	return f.value.IsZero() || f.value.Kind() == reflect.Slice && f.value.Len() == 0
}

// equals reports whether two fields say the same.
func (f field) equals(o field) bool {
	if f.value.Kind() == reflect.Slice {
		return slices.Equal(f.value.Interface().([]string), o.value.Interface().([]string))
	}
	return f.value.Equal(o.value)
}

// String is the value for people; nothing is "".
func (f field) String() string {
	switch f.value.Kind() {
	case reflect.Slice:
		if f.value.Len() == 0 {
			return `""`
		}
		return "[" + strings.Join(f.value.Interface().([]string), ", ") + "]"
	case reflect.Int:
		return strconv.FormatInt(f.value.Int(), 10)
	default:
		if s := f.value.String(); s != "" {
			return s
		}
		return `""`
	}
}
