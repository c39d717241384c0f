// Package tlsport lets a server take plain connections and TLS on one port, bounds how many
// it takes, and cuts those whose certificate has been revoked.
package tlsport

import (
	"slices"

	"github.com/contiv/netplugin/utils/errs"
)

// Mode says which connections a listener takes.
type Mode string

// The modes, from open to closed.
const (
	Off     Mode = "off"     // plain only, as the original
	Accept  Mode = "accept"  // plain and TLS, told by the first byte
	Require Mode = "require" // TLS only
)

// ParseMode reads a mode. The error's kind is Invalid.
func ParseMode(text string) (Mode, error) {
	m := Mode(text)
	if !slices.Contains([]Mode{Off, Accept, Require}, m) {
		return Off, errs.New(errs.Invalid, "TLS mode %q is unknown, expected one of off, accept, require", text)
	}
	return m, nil
}

// TLS reports whether the mode has TLS at all.
func (m Mode) TLS() bool { return m != Off }
