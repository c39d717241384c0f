package cni

import (
	"cmp"
	"encoding/json"
	"io"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
)

// WriteError writes err in the form of the specification ("Error"), as one line. An
// empty version stands for the newest one.
func WriteError(w io.Writer, version string, err *types.Error) error {
	return json.NewEncoder(w).Encode(struct {
		CNIVersion string `json:"cniVersion"`
		*types.Error
	}{cmp.Or(version, current.ImplementedSpecVersion), err})
}
