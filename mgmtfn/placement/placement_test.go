package placement

import (
	"testing"

	"github.com/contiv/netplugin/state"
)

func TestLabelsAndAnnotations(t *testing.T) {
	labels := map[string]string{LabelNetwork: "net2", "app": "web"}
	annotations := map[string]string{LabelTenant: "blue", LabelNetwork: "net1", LabelGroup: ""}
	if got, want := Annotated(labels, annotations), (state.NetworkRef{Tenant: "blue", Network: "net2"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := WithDefaults(Labelled(labels)), (state.NetworkRef{Tenant: "default", Network: "net2"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := WithDefaults(Labelled(nil)), (state.NetworkRef{Tenant: "default", Network: "default-net"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestInNamespace(t *testing.T) {
	ref := func(tenant, network, group string) state.NetworkRef {
		return state.NetworkRef{Tenant: tenant, Network: network, Group: group}
	}
	for _, c := range []struct{ pod, namespace, want state.NetworkRef }{
		{ref("", "", ""), ref("", "", ""), ref("", "", "")},
		{ref("", "", ""), ref("blue", "net1", "web"), ref("blue", "net1", "web")},
		{ref("", "", "db"), ref("blue", "net1", "web"), ref("blue", "net1", "db")},
		{ref("", "net1", ""), ref("blue", "net1", "web"), ref("blue", "net1", "web")},
		{ref("", "net2", ""), ref("blue", "net1", "web"), ref("blue", "net2", "")},
		{ref("red", "", ""), ref("", "net1", ""), ref("red", "net1", "")},
		{ref("a.b", "net.1", ""), ref("", "", ""), ref("a.b", "net.1", "")},
	} {
		got := InNamespace(c.pod, c.namespace)
		if got != c.want {
			t.Errorf("%+v in %+v: %+v, want %+v", c.pod, c.namespace, got, c.want)
		}
		if tenant := Tenant(c.pod.Tenant, c.namespace.Tenant); tenant != WithDefaults(got).Tenant {
			t.Errorf("%+v in %+v is of tenant %s for policies and of %s for its network", c.pod, c.namespace, tenant, WithDefaults(got).Tenant)
		}
	}
}
