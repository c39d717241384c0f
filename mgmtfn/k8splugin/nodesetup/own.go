package nodesetup

import (
	"encoding/json"
	"errors"
	"maps"

	"github.com/contiv/netplugin/utils/errs"
)

// CheckConf says what is wrong with the network configuration that Config.Conf is to
// have: that of a list of plugins, or of one, as there were in earlier releases.
func CheckConf(conf string) error {
	if conf == "" {
		return nil
	}
	_, err := asList(conf)
	return err
}

// asList makes a list of one plugin a list.
func asList(conf string) ([]byte, error) {
	fail := func(err error) ([]byte, error) {
		return nil, errs.New(errs.Invalid, "expected a CNI network configuration or list, in JSON: %w", err)
	}
	var list map[string]any
	if err := json.Unmarshal([]byte(conf), &list); err != nil {
		return fail(err)
	}
	if _, ok := list["plugins"].([]any); !ok {
		if kind, ok := list["type"].(string); !ok || kind == "" {
			return fail(errors.New("there is neither plugins nor a type in it"))
		}
		plugin := maps.Clone(list)
		delete(plugin, "cniVersion")
		delete(plugin, "name")
		list = map[string]any{"cniVersion": list["cniVersion"], "name": list["name"], "plugins": []any{plugin}}
	}
	b, err := json.MarshalIndent(list, "", "  ")
	return append(b, '\n'), err
}
