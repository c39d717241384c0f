// Package redact removes secrets from text that is given to others: JSON documents, flags of a
// command line, logs, metrics. It knows them by the names that they have and by their form. What
// is in doubt is removed.
package redact

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// Removed stands where a secret was.
const Removed = "(removed)"

// named finds names of what is secret.
var named = regexp.MustCompile(`(?i)(passw|passphrase|secret|token|credential|authorization|cookie|private|api[-_]?key|hash|sealed|salt)`)

// Forms of secrets, wherever they are.
var (
	inURL   = regexp.MustCompile(`(://)[^/\s"'@]+@`)
	pemKey  = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)
	bearer  = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)
	jwt     = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`)
	setting = regexp.MustCompile(`(?i)([A-Za-z0-9_.-]*(?:passw|passphrase|secret|token|credential|authorization|private)[A-Za-z0-9_.-]*["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;&"']+)`)
)

// Text removes secrets from text.
func Text(s string) string {
	s = pemKey.ReplaceAllString(s, Removed)
	s = inURL.ReplaceAllString(s, "${1}"+Removed+"@")
	s = bearer.ReplaceAllString(s, "${1} "+Removed)
	s = jwt.ReplaceAllString(s, Removed)
	return setting.ReplaceAllString(s, "${1}"+Removed)
}

// JSON removes secrets from a JSON document: the values of what is named as one, with all that is in
// them, and those that Text finds in strings. What is no JSON is treated as text.
func JSON(doc []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return []byte(Text(string(doc)))
	}
	out, err := json.MarshalIndent(value(v), "", " ")
	if err != nil {
		return []byte(Removed)
	}
	return append(out, '\n')
}

func value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if named.MatchString(name) && !empty(inner) {
				v[name] = Removed
			} else {
				v[name] = value(inner)
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = value(v[i])
		}
		return v
	case string:
		return Text(v)
	}
	return v
}

// empty reports whether there is nothing that could be a secret: a number of bytes or a yes says nothing.
func empty(v any) bool {
	switch v := v.(type) {
	case nil, bool:
		return true
	case string:
		return v == ""
	}
	return false
}

// Flags removes secrets from the arguments of a command line: the values of flags that are
// named as one, and what Text finds in others.
func Flags(args []string) []string {
	out := make([]string, len(args))
	hide := false // the last argument was the name of a secret
	for i, arg := range args {
		name, _, hasValue := strings.Cut(arg, "=")
		switch flag := strings.HasPrefix(arg, "-"); {
		case hide && !flag:
			out[i], hide = Removed, false
		case flag && named.MatchString(name) && hasValue:
			out[i], hide = name+"="+Removed, false
		default:
			out[i], hide = Text(arg), flag && named.MatchString(name)
		}
	}
	return out
}
