package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
)

// Image says what is run in a container, and under what name it is known.
type Image struct {
	Name       string   // such as contiv/netplugin:2.0.0
	Entrypoint []string // the program; before Cmd
	Cmd        []string // its arguments, or the program if there is no Entrypoint
	Env        []string // K=V
}

// WriteArchive writes an archive of images that consist of the same tree, as docker save
// does (Docker Image Specification 1.2: manifest.json, a configuration for each image, a
// layer).
func WriteArchive(w io.Writer, root *Tree, images ...Image) (err error) {
	layer, err := os.CreateTemp("", "contiv-layer-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, layer.Close(), os.Remove(layer.Name())) }()
	sum := sha256.New()
	if err := root.WriteTar(io.MultiWriter(layer, sum)); err != nil {
		return err
	}
	digest := fmt.Sprintf("%x", sum.Sum(nil))
	size, err := layer.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := layer.Seek(0, io.SeekStart); err != nil {
		return err
	}
	archive := tar.NewWriter(w)
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: digest + "/layer.tar", Mode: 0o644, Size: size}); err != nil {
		return err
	}
	if _, err := io.Copy(archive, layer); err != nil {
		return err
	}
	if err := writeConfigs(archive, digest, images); err != nil {
		return err
	}
	return archive.Close()
}

// writeConfigs writes what says which image has which configuration and layer.
func writeConfigs(w *tar.Writer, layer string, images []Image) error {
	type entry struct {
		Config           string
		RepoTags, Layers []string
	}
	var manifest []entry
	for _, image := range images {
		config, err := json.Marshal(map[string]any{
			"architecture": runtime.GOARCH, "os": "linux", "created": "1970-01-01T00:00:00Z",
			"config": map[string]any{"Entrypoint": image.Entrypoint, "Cmd": image.Cmd, "Env": image.Env},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + layer}},
		})
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%x.json", sha256.Sum256(config))
		if err := addFile(w, name, 0o644, config); err != nil {
			return err
		}
		manifest = append(manifest, entry{name, []string{image.Name}, []string{layer + "/layer.tar"}})
	}
	b, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	return addFile(w, "manifest.json", 0o644, b)
}
