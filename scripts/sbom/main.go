// Command sbom writes what the binaries and the container image consist of, as bills of
// materials in CycloneDX's JSON: binaries.cdx.json and image.cdx.json. Equal input makes equal
// files.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"github.com/contiv/netplugin/install/image"
)

func main() {
	bin := flag.String("bin", "bin", "`directory` of the binaries")
	out := flag.String("o", "dist/sbom", "`directory` to write to")
	flag.Parse()
	if err := run(*bin, *out); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(bin, out string) error {
	var binaries []cyclonedx.Component
	for _, name := range image.Binaries() {
		c, err := binary(filepath.Join(bin, name))
		if err != nil {
			return err
		}
		binaries = append(binaries, c)
	}
	root, err := image.Root(bin)
	if err != nil {
		return err
	}
	packages, err := root.Packages()
	if err != nil {
		return err
	}
	inImage := binaries
	for _, p := range packages {
		inImage = append(inImage, debian(p))
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := write(filepath.Join(out, "binaries.cdx.json"), application(), binaries); err != nil {
		return err
	}
	return write(filepath.Join(out, "image.cdx.json"), container(), inImage)
}

// write writes one bill of materials: what is described, and what it consists of.
func write(path string, whole cyclonedx.Component, parts []cyclonedx.Component) error {
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &whole}
	bom.Components = &parts
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := cyclonedx.NewBOMEncoder(f, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Close()
}
