// Package plugin makes the managed plugin of the Docker Engine ("v2 plugin"): what docker
// plugin create takes is a directory with config.json, which says what the Engine runs
// and what users can set, and rootfs, which is that of the container image and the script
// that starts the daemons.
package plugin

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/contiv/netplugin/install/image"
	"github.com/contiv/netplugin/utils/errs"
)

// Name is what the plugin is called in documents; users may choose another one.
const Name = "contiv/v2plugin:latest"

// Config is config.json (Plugin Config Version 1 of Plugin V2).
//
//go:embed config.json
var Config string

//go:embed startcontiv.sh
var start string

// Write writes the plugin into an empty directory, or one that is not there yet. The
// binaries are those that make build has put into the directory bin.
func Write(bin, dir string) error {
	if left, err := os.ReadDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	} else if len(left) > 0 {
		return errs.New(errs.Exists, "directory %s is not empty: remove it first", dir)
	}
	root, err := image.Root(bin)
	if err != nil {
		return err
	}
	root.Text("startcontiv.sh", start, 0o755)
	if err := root.WriteDir(filepath.Join(dir, "rootfs")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), []byte(Config), 0o644)
}
