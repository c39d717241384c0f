package k8splugin

import (
	"slices"
	"strings"

	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/mgmtfn/placement"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// Tenancy is who chooses the tenant, network and group of pods.
type Tenancy string

// Open lets pods choose, except for the tenant if their namespace names one. Strict
// lets namespaces choose: a pod may only ask for what its namespace names or allows.
const (
	Open   Tenancy = "open"
	Strict Tenancy = "strict"
)

// AllowedAnnotation of a namespace lists, separated by commas, what its pods may choose
// under strict tenancy: TENANT, with everything in it, TENANT/NETWORK, with all its groups
// and none, or TENANT/NETWORK/GROUP.
const AllowedAnnotation = "io.contiv.allowed"

// asEntry writes a network as the narrowest entry of the annotation that allows it.
func asEntry(p state.NetworkRef) string {
	return strings.TrimSuffix(p.Tenant+"/"+p.Network+"/"+p.Group, "/")
}

// allows reports whether a list in an annotation allows a network.
func allows(list string, p state.NetworkRef) bool {
	entries := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
	return slices.ContainsFunc(entries, func(e string) bool {
		return e == p.Tenant || e == p.Tenant+"/"+p.Network || p.Group != "" && e == asEntry(p)
	})
}

// permit checks what a pod gets under strict tenancy.
func permit(want attachment.Pod, got, namespace state.NetworkRef, list string) error {
	got, namespace = placement.WithDefaults(got), placement.WithDefaults(namespace)
	if got == namespace || allows(list, got) {
		return nil
	}
	what := "network " + got.Network + " of tenant " + got.Tenant
	if got.Group != "" {
		what = "group " + got.Group + " in " + what
	}
	return errs.New(errs.Invalid, "pod %s/%s asks for %s, which its namespace does not allow: add %s to the annotation %s of namespace %s, or remove the labels io.contiv.* from the pod",
		want.Namespace, want.Name, what, asEntry(got), AllowedAnnotation, want.Namespace)
}
