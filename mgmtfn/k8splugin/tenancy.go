package k8splugin

import (
	"cmp"
	"slices"
	"strings"

	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/utils/errs"
)

// Tenancy says who decides where pods belong.
type Tenancy string

// Open leaves it to pods, but for the tenant where their namespace names one. Strict
// leaves it to namespaces: what a pod asks for must be what its namespace says, or allows.
const (
	Open   Tenancy = "open"
	Strict Tenancy = "strict"
)

// AllowedAnnotation of a namespace lists, separated by commas, what its pods may choose
// under strict tenancy: TENANT, with everything in it, TENANT/NETWORK, with all its groups
// and none, or TENANT/NETWORK/GROUP.
const AllowedAnnotation = "io.contiv.allowed"

// full is a place with the names of what is not said. (See attachment.Request.Place.)
func full(p attachment.Place) attachment.Place {
	return attachment.Place{Tenant: cmp.Or(p.Tenant, "default"), Network: cmp.Or(p.Network, "default-net"), Group: p.Group}
}

// asEntry writes a place as the narrowest entry of the annotation that allows it.
func asEntry(p attachment.Place) string {
	return strings.TrimSuffix(p.Tenant+"/"+p.Network+"/"+p.Group, "/")
}

// allows reports whether a list in an annotation allows a place.
func allows(list string, p attachment.Place) bool {
	entries := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
	return slices.ContainsFunc(entries, func(e string) bool {
		return e == p.Tenant || e == p.Tenant+"/"+p.Network || p.Group != "" && e == asEntry(p)
	})
}

// permit checks what a pod gets under strict tenancy.
func permit(want attachment.Pod, got, namespace attachment.Place, list string) error {
	got, namespace = full(got), full(namespace)
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
