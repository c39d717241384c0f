package k8splugin

import (
	"strings"
	"testing"

	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// TestStrictTenancy: a pod gets what its namespace says or allows, whatever it asks for.
func TestStrictTenancy(t *testing.T) {
	ref := func(text string) state.NetworkRef {
		parts := append(strings.Split(text, "/"), "", "")
		return state.NetworkRef{Tenant: parts[0], Network: parts[1], Group: parts[2]}
	}
	for _, c := range []struct {
		name, pod, namespace, list string
		refused                    string // what the error says
	}{
		{name: "nothing is said"},
		{name: "what is the default anyway", pod: "default/default-net"},
		{name: "what the namespace says", pod: "blue/web/front", namespace: "blue/web/front"},
		{name: "another tenant", pod: "blue", refused: "network default-net of tenant blue, which its namespace does not allow: add blue/default-net to the annotation io.contiv.allowed of namespace shop"},
		{name: "another network", pod: "/web", refused: "add default/web to"},
		{name: "another group", pod: "//front", refused: "group front in network default-net of tenant default, which its namespace does not allow: add default/default-net/front to"},
		{name: "out of the namespace's group", pod: "default/default-net", namespace: "//front", refused: "network default-net"},
		{name: "another network of the namespace's tenant", pod: "blue/db", namespace: "blue/web", refused: "add blue/db to"},
		{name: "a tenant", pod: "blue/web/front", list: "red, blue"},
		{name: "a network with its groups", pod: "blue/web/front", list: "blue/web"},
		{name: "a network without one", pod: "blue/web", list: "blue/web"},
		{name: "a group", pod: "blue/web/front", list: "blue/db,\nblue/web/front"},
		{name: "a group is not the network", pod: "blue/web", list: "blue/web/front", refused: "add blue/web to"},
		{name: "another group of it", pod: "blue/web/back", list: "blue/web/front", refused: "add blue/web/back to"},
		{name: "a name that begins alike", pod: "blue2/web", list: "blue, blue2/we", refused: "add blue2/web to"},
		{name: "an entry that is none", pod: "blue/web", list: "*, blue/*, /web, blue/", refused: "add blue/web to"},
	} {
		err := permit(attachment.Pod{Namespace: "shop", Name: "one"}, ref(c.pod), ref(c.namespace), c.list)
		if (err == nil) != (c.refused == "") || err != nil && (!errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.refused)
		}
	}
}
