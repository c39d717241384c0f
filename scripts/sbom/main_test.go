package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"path/filepath"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"github.com/contiv/netplugin/install/image"
	"github.com/contiv/netplugin/netmaster/ui"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// parts are the components of a bill of materials at all depths, by package URL.
func parts(t *testing.T, content []byte) map[string]cyclonedx.Component {
	t.Helper()
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(content), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	all, refs := map[string]cyclonedx.Component{}, map[string]bool{}
	var walk func([]cyclonedx.Component)
	walk = func(list []cyclonedx.Component) {
		for _, c := range list {
			if refs[c.BOMRef] {
				t.Errorf("reference %s is there twice", c.BOMRef)
			}
			refs[c.BOMRef] = true
			all[c.PackageURL] = c
			if c.Components != nil {
				walk(*c.Components)
			}
		}
	}
	walk(*bom.Components)
	return all
}

// TestBillsOfMaterials: they name every module of the binaries and every package of the image,
// and are the same the next time.
func TestBillsOfMaterials(t *testing.T) {
	bin, out := labtest.Bin(t), t.TempDir()
	var before []byte
	for range 2 {
		if err := run(bin, out); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(out, "image.cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && !bytes.Equal(before, content) {
			t.Error("the second one differs")
		}
		before = content
	}
	binaries, err := os.ReadFile(filepath.Join(out, "binaries.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	inBinaries, inImage := parts(t, binaries), parts(t, before)
	for _, name := range image.Binaries() {
		info, err := buildinfo.ReadFile(filepath.Join(bin, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, dep := range info.Deps {
			purl := "pkg:golang/" + dep.Path + "@" + dep.Version
			if inBinaries[purl].Version != dep.Version || inImage[purl].Version != dep.Version {
				t.Errorf("%s of %s is missing", purl, name)
			}
		}
	}
	page, err := ui.Packages()
	if err != nil || len(page) == 0 {
		t.Fatalf("the page contains %v, %v", page, err)
	}
	for _, p := range page {
		if purl := "pkg:npm/" + p.Name + "@" + p.Version; inBinaries[purl].Version != p.Version || inImage[purl].Version != p.Version {
			t.Errorf("%s of netmaster's page is missing", purl)
		}
	}
	debian := map[string]bool{}
	for _, c := range inImage {
		debian[c.Name] = true
	}
	for _, name := range []string{"openvswitch-switch", "nftables", "busybox-static", "libc6", "ca-certificates"} {
		if !debian[name] {
			t.Errorf("package %s is missing", name)
		}
	}
}
