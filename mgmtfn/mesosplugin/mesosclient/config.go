package mesosclient

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/utils"
	cniversion "github.com/containernetworking/cni/pkg/version"

	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/mesosplugin/mesosapi"
)

const (
	// maxConf bounds a network configuration, in bytes.
	maxConf = 1 << 20
	// oldVersion is the specification's of a configuration that names none: Mesos reads
	// results of it.
	oldVersion = "0.2.0"
)

// netConf is the network configuration. Unknown members are ignored.
type netConf struct {
	CNIVersion string               `json:"cniVersion"`
	Name       string               `json:"name"`
	DNS        *types.DNS           `json:"dns"`
	Args       *isolatorArgs        `json:"args"`
	Valid      []types.GCAttachment `json:"cni.dev/valid-attachments"`
	Socket     string               `json:"socket"`  // of Contiv's agent
	LogFile    string               `json:"logFile"` // default /var/log/netcontiv.log
}

// isolatorArgs is what the isolator of Mesos adds to a network configuration.
type isolatorArgs struct {
	Mesos struct {
		NetworkInfo struct {
			Labels struct {
				Labels []struct {
					Key   string `json:"key"`
					Value string `json:"value"`
				} `json:"labels"`
			} `json:"labels"`
		} `json:"network_info"`
	} `json:"org.apache.mesos"`
}

// labels are the container's; of several with one key the last counts. Nil args have
// none.
func (a *isolatorArgs) labels() map[string]string {
	out := map[string]string{}
	if a == nil {
		return out
	}
	for _, l := range a.Mesos.NetworkInfo.Labels.Labels {
		out[l.Key] = l.Value
	}
	return out
}

// parseConf reads a network configuration; an empty one stands for all defaults.
func parseConf(raw []byte) (*netConf, *types.Error) {
	conf := &netConf{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, conf); err != nil {
			return &netConf{}, types.NewError(cni.CodeDecode, "contiv: cannot read the network configuration", err.Error())
		}
	}
	conf.CNIVersion = cmp.Or(conf.CNIVersion, oldVersion)
	if known := cniversion.All.SupportedVersions(); !slices.Contains(known, conf.CNIVersion) {
		asked := conf.CNIVersion
		conf.CNIVersion = ""
		return conf, types.NewError(types.ErrIncompatibleCNIVersion, "contiv: incompatible CNI version", fmt.Sprintf("cniVersion %q: expected one of %v", asked, known))
	}
	if conf.Name != "" {
		if err := utils.ValidateNetworkName(conf.Name); err != nil {
			return conf, types.NewError(cni.CodeInvalidConfig, "contiv: invalid network configuration", fmt.Sprintf("name %q: %s", conf.Name, err.Msg))
		}
	}
	conf.Socket = cmp.Or(conf.Socket, mesosapi.DefaultSocket)
	return conf, nil
}

// labels finds those of the container: in the configuration, else in the copy of it that
// the isolator leaves beside the namespace. An error is no reason to fail the call: what
// no label says has a default.
func (c *netConf) labels(netns string) (map[string]string, error) {
	if c.Args != nil || netns == "" {
		return c.Args.labels(), nil
	}
	path := filepath.Join(filepath.Dir(netns), cmp.Or(c.Name, mesosapi.DefaultNetwork), "network.conf")
	raw, err := readFile(path)
	if err != nil {
		return c.Args.labels(), err
	}
	var beside netConf
	if err := json.Unmarshal(raw, &beside); err != nil {
		return c.Args.labels(), fmt.Errorf("%s: %w", path, err)
	}
	return beside.Args.labels(), nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

// readAll reads a bounded configuration.
func readAll(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxConf+1))
	if err == nil && len(raw) > maxConf {
		err = errors.New("more than 1 MiB")
	}
	return raw, err
}
