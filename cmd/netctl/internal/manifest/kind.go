package manifest

import (
	"slices"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
)

// kind is a kind of objects that files can have.
type kind struct {
	contivmodel.AnyKind
	typ string // as files say it
}

// kinds returns the kinds in an order in which objects can be created.
func kinds() []kind {
	var all []kind
	for _, k := range contivmodel.Kinds() {
		if about := k.Description(); !about.Reserved {
			all = append(all, kind{k, about.Type})
		}
	}
	return all
}

// kindOf finds a kind by its name in files.
func kindOf(typ string) (kind, error) {
	known := kinds()
	types := make([]string, len(known))
	for i, k := range known {
		if k.typ == typ {
			return k, nil
		}
		types[i] = k.typ
	}
	return kind{}, errs.New(errs.Invalid, "unknown kind %q: expected one of %s", typ, strings.Join(types, ", "))
}

// isServerMember reports whether only the server sets a member.
func isServerMember(name string) bool {
	return slices.Contains([]string{"key", "links", "link-sets"}, name)
}
