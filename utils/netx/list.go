package netx

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// listAttempts is how often a list is asked for that is interrupted each time, as often as
// package netlinksafe does.
const listAttempts = 5

// ListSafely lists what the kernel has, again when a change has interrupted the list: it is
// incomplete then. It is for the lists that package netlinksafe does not have.
func ListSafely[T any](list func() ([]T, error)) (all []T, err error) {
	for range listAttempts {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}
