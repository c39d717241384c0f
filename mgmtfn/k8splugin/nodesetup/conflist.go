package nodesetup

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/containernetworking/cni/pkg/invoke"
)

// Versions of the CNI specification. Runtimes that know nothing of the member cniVersions
// take cniVersion, others the newest of both that they speak. From 1.1.0 on they ask
// STATUS, so that a node is ready only while its agent is.
const (
	plainVersion  = "1.0.0"
	newestVersion = "1.1.0"
)

// chained is what is called after ours: for ports of the host.
const chained = "portmap"

// conflist is the network configuration: ours, and the plugin behind it. A configuration
// is of a version that every plugin in it speaks.
func conflist(socket string, newest bool) ([]byte, error) {
	conf := map[string]any{
		"cniVersion": plainVersion,
		"name":       "contiv-net",
		"plugins": []any{
			map[string]any{"type": Plugin, "socket": socket},
			map[string]any{"type": chained, "capabilities": map[string]bool{"portMappings": true}, "snat": true},
		},
	}
	if newest {
		conf["cniVersions"] = []string{plainVersion, newestVersion}
	}
	b, err := json.MarshalIndent(conf, "", "  ")
	return append(b, '\n'), err
}

// speaksNewest asks a plugin whether it speaks the newest version of the specification.
func speaksNewest(ctx context.Context, dir, plugin string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	info, err := invoke.GetVersionInfo(ctx, filepath.Join(dir, plugin), nil)
	if err != nil {
		return false, fmt.Errorf("ask CNI plugin %s for its versions: %w", filepath.Join(dir, plugin), err)
	}
	return slices.Contains(info.SupportedVersions(), newestVersion), nil
}
