package main

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"github.com/contiv/netplugin/install/image"
	"github.com/contiv/netplugin/netmaster/ui"
)

func application() cyclonedx.Component {
	return cyclonedx.Component{BOMRef: "contiv-netplugin", Type: cyclonedx.ComponentTypeApplication, Name: "contiv/netplugin", Version: image.Version}
}

func container() cyclonedx.Component {
	return cyclonedx.Component{BOMRef: image.Name, Type: cyclonedx.ComponentTypeContainer, Name: "contiv/netplugin", Version: image.Version}
}

// binary is one of our programs, with its modules in it.
func binary(path string) (cyclonedx.Component, error) {
	modules, err := image.Modules(path)
	if err != nil {
		return cyclonedx.Component{}, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return cyclonedx.Component{}, err
	}
	name := filepath.Base(path)
	parts := make([]cyclonedx.Component, 0, len(modules))
	for _, m := range modules {
		parts = append(parts, goModule(name, m))
	}
	if name == "netmaster" {
		packages, err := ui.Packages()
		if err != nil {
			return cyclonedx.Component{}, err
		}
		for _, p := range packages {
			parts = append(parts, npmPackage(name, p))
		}
	}
	return cyclonedx.Component{
		BOMRef: name, Type: cyclonedx.ComponentTypeApplication, Name: name, Version: image.Version,
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(content))}},
		Components: &parts,
	}, nil
}

// goModule is a module in a program; references are unique in a document.
func goModule(program string, m image.Module) cyclonedx.Component {
	purl := "pkg:golang/" + m.Path + "@" + url.PathEscape(m.Version)
	return cyclonedx.Component{
		BOMRef: program + " " + purl, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl,
		ExternalReferences: &[]cyclonedx.ExternalReference{{Type: cyclonedx.ERTypeDistribution, URL: m.SourceURL()}},
	}
}

// npmPackage is a package in netmaster's page.
func npmPackage(program string, p ui.Package) cyclonedx.Component {
	purl := "pkg:npm/" + strings.ReplaceAll(p.Name, "@", "%40") + "@" + url.PathEscape(p.Version)
	return cyclonedx.Component{BOMRef: program + " " + purl, Type: cyclonedx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: purl}
}

// debian is a package whose files are in the image.
func debian(p image.Package) cyclonedx.Component {
	version := strings.ReplaceAll(url.QueryEscape(p.Version), "~", "%7E")
	purl := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", url.PathEscape(p.Name), version, p.Architecture)
	return cyclonedx.Component{
		BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: purl,
		Properties: &[]cyclonedx.Property{{Name: "debian:source", Value: p.Source + " " + p.SourceVersion}},
	}
}
