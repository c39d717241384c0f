package netx

import (
	"errors"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
)

// TestListSafely: an interrupted list is asked for again, one that fails is not, and one
// that is interrupted for ever is an error.
func TestListSafely(t *testing.T) {
	broken := errors.New("no permission")
	for _, tt := range []struct {
		name  string
		errs  []error // of the attempts; the last one for all further ones
		asked int
		want  error
	}{
		{"at once", []error{nil}, 1, nil},
		{"interrupted twice", []error{netlink.ErrDumpInterrupted, netlink.ErrDumpInterrupted, nil}, 3, nil},
		{"fails", []error{broken}, 1, broken},
		{"never complete", []error{netlink.ErrDumpInterrupted}, listAttempts, netlink.ErrDumpInterrupted},
	} {
		asked := 0
		all, err := ListSafely(func() ([]int, error) {
			asked++
			return []int{asked}, tt.errs[min(asked, len(tt.errs))-1]
		})
		if !errors.Is(err, tt.want) || asked != tt.asked || !slices.Equal(all, []int{asked}) {
			t.Errorf("%s: %v, %v after %d attempts; want error %v after %d", tt.name, all, err, asked, tt.want, tt.asked)
		}
	}
}
