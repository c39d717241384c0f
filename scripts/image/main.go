// Command image makes the container image of Contiv from what make build has built and
// from programs of this machine, with neither a container engine nor a registry. It writes
// an archive for docker load and ctr images import, or with -rootfs a tar archive of the
// root file system alone, with -plugin the directory that docker plugin create takes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/contiv/netplugin/install/image"
	"github.com/contiv/netplugin/install/plugin"
)

func main() {
	bin := flag.String("bin", "bin", "`directory` of the binaries")
	name := flag.String("name", image.Name, "`name` of the image")
	out := flag.String("o", "dist/contiv-netplugin.tar", "`file` to write; - for standard output")
	rootfs := flag.Bool("rootfs", false, "write the root file system alone")
	pluginDir := flag.String("plugin", "", "`directory` to write the managed plugin of the Docker Engine to, instead")
	flag.Parse()
	if *pluginDir != "" {
		end(plugin.Write(*bin, *pluginDir))
		return
	}
	end(run(*bin, *name, *out, *rootfs))
}

// end ends the program if there is an error.
func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(bin, name, out string, rootfs bool) error {
	root, err := image.Root(bin)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return image.WriteArchive(w, root, image.Contiv(name)) }
	if rootfs {
		write = root.WriteTar
	}
	if out == "-" {
		return write(os.Stdout)
	}
	return replace(out, write)
}

// replace writes a file that is there as a whole or not at all.
func replace(path string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".image-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
