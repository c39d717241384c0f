package dockplugin

import (
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// ManagedName stands for the name under which a managed plugin was installed.
const ManagedName = "auto"

var pluginID = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ManagedID returns the id of the managed plugin that this process runs in. The Engine
// mounts a directory of that name at the directory of the plugin's socket; there is no
// other way to get it.
func ManagedID() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return managedID(string(mounts))
}

// managedID parses it from a list of mounts in the format of proc(5): the fourth and fifth
// field of a line are the mounted directory and the mount point.
func managedID(mounts string) (string, error) {
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) < 5 || f[4] != path.Dir(DefaultSocket) {
			continue
		}
		if id := path.Base(f[3]); pluginID.MatchString(id) {
			return id, nil
		}
	}
	return "", errs.New(errs.NotFound, "this is no managed plugin of a Docker Engine: no directory of one is mounted at %s", path.Dir(DefaultSocket))
}
