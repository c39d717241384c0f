package netx

import "github.com/contiv/netplugin/utils/errs"

// MaxLinkName is how many bytes an interface's name has at most (IFNAMSIZ less the
// final zero).
const MaxLinkName = 15

// CheckLinkName returns nil when name can be given to a network interface, written into
// the rules of nftables and used below /proc/sys/net: ASCII letters, digits, dots,
// hyphens and underscores, with a letter or digit first. The kernel would take nearly
// everything. The error is Invalid.
func CheckLinkName(name string) error {
	if name == "" || len(name) > MaxLinkName {
		return errs.New(errs.Invalid, "interface name %q has %d bytes: expected 1 to %d; use another name", name, len(name), MaxLinkName)
	}
	if name == "all" || name == "default" { // settings of all interfaces (ip-sysctl)
		return errs.New(errs.Invalid, "interface name %q stands for all interfaces: use another name", name)
	}
	for i := range len(name) {
		ch := name[i]
		alnum := '0' <= ch && ch <= '9' || 'a' <= ch && ch <= 'z' || 'A' <= ch && ch <= 'Z'
		if !alnum && (i == 0 || ch != '.' && ch != '-' && ch != '_') {
			return errs.New(errs.Invalid, "interface name %q: expected letters, digits, dots, hyphens and underscores, a letter or digit first", name)
		}
	}
	return nil
}
