package netx

import (
	"strings"
	"testing"

	"github.com/contiv/netplugin/utils/errs"
)

func TestCheckLinkName(t *testing.T) {
	for name, ok := range map[string]bool{
		"contivh1": true, "a": true, "eth0.100": true, "veth_1-a": true, "0a": true, strings.Repeat("x", 15): true,
		"": false, strings.Repeat("x", 16): false, ".": false, "..": false, ".hidden": false, "-x": false, "all": false, "default": false,
		"a b": false, "a/b": false, "a\"b": false, "a\nb": false, "a;b": false, "a{b": false, "a#b": false, "a\\b": false, "ä": false, "a\x00": false, "a*": false,
	} {
		err := CheckLinkName(name)
		if (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
		if err != nil && errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: the error is %v, not Invalid", name, errs.KindOf(err))
		}
	}
}
