package lab

import (
	"os"
	"path/filepath"

	"github.com/contiv/netplugin/utils/errs"
)

// Values of Config.Containerd.
const (
	ContainerdPacked = "1" // that of the distribution, 1.6: CNI 1.0
	ContainerdBuilt  = "2" // the one scripts/containerd builds, 2.3: CNI 1.1
)

// containerdVersion is what scripts/containerd builds.
const containerdVersion = "2.3.7"

// containerdDir is where scripts/containerd puts what it builds: containerd, its shim,
// and CNI plugins of its age.
func containerdDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", errs.New(errs.NotFound, "where containerd was built: %w", err)
	}
	return filepath.Join(cache, "contiv", "containerd-"+containerdVersion), nil
}

// builtPlugins are the CNI plugins among what scripts/containerd builds.
func builtPlugins() []string { return []string{"portmap", "bandwidth", "loopback"} }

func findContainerd(version string) error {
	if version != ContainerdBuilt {
		return nil // findKubernetes sees to it
	}
	dir, err := containerdDir()
	if err != nil {
		return err
	}
	for _, name := range append(builtPlugins(), containerd, "containerd-shim-runc-v2") {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return errs.New(errs.NotFound, "program %s is missing: run make containerd", filepath.Join(dir, name))
		}
	}
	return nil
}

// containerd is the version on the host: the last one given applies to all hosts after it.
func (h *Host) containerd() string {
	given := h.lab.cfg.Containerd
	if len(given) == 0 {
		return ContainerdPacked
	}
	return given[min(h.Number, len(given))-1]
}

// containerdProgram is what the host runs.
func (h *Host) containerdProgram() string {
	if dir, err := containerdDir(); err == nil && h.containerd() == ContainerdBuilt {
		return filepath.Join(dir, containerd)
	}
	return containerd
}

// containerdConfig leaves out of pods what root in a container may not do on this machine.
func (h *Host) containerdConfig() string {
	dir, err := containerdDir()
	if err != nil || h.containerd() != ContainerdBuilt {
		return `version = 2
oom_score = 0
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + pauseImage + `"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
`
	}
	return `version = 3
oom_score = 0
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "` + pauseImage + `"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    runtime_path = "` + filepath.Join(dir, "containerd-shim-runc-v2") + `"
`
}
