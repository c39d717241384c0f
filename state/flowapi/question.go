package flowapi

import (
	"net/url"
	"strconv"

	"github.com/contiv/netplugin/utils/errs"
)

func (q *Question) texts() map[string]*string {
	return map[string]*string{"from": &q.From, "to": &q.To, "tenant": &q.Tenant, "proto": &q.Proto}
}

// Values puts a question into a query; what is empty is left out.
func (q Question) Values() url.Values {
	v := url.Values{}
	for name, text := range q.texts() {
		if *text != "" {
			v.Set(name, *text)
		}
	}
	for name, n := range map[string]int{"port": int(q.Port), "family": q.Family} {
		if n != 0 {
			v.Set(name, strconv.Itoa(n))
		}
	}
	return v
}

// ParseQuestion reads a question from a query. An error is of kind Invalid and names the
// parameter.
func ParseQuestion(v url.Values) (Question, error) {
	var q Question
	for name, values := range v {
		text, ok := q.texts()[name]
		n, err := strconv.ParseUint(values[0], 10, 16)
		switch {
		case len(values) != 1 || len(values[0]) > maxText:
			return q, errs.New(errs.Invalid, "parameter %.40q: expected one of at most %d bytes", name, maxText)
		case ok:
			*text = values[0]
		case name == "port" && err == nil && n > 0:
			q.Port = uint16(n)
		case name == "family" && (values[0] == "4" || values[0] == "6"):
			q.Family = int(n)
		case name == "port":
			return q, errs.New(errs.Invalid, "port %.40q: expected 1 to 65535", values[0])
		case name == "family":
			return q, errs.New(errs.Invalid, "address family %.40q: expected 4 or 6", values[0])
		default:
			return q, errs.New(errs.Invalid, "unknown parameter %.40q", name)
		}
	}
	return q, nil
}
