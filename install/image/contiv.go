package image

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

//go:embed entrypoint
var entrypoint string

// Name is what the manifest calls the image.
const Name = "contiv/netplugin:" + Version

// Version is the release that this tree becomes; manifests have it as the image's tag.
const Version = "2.0.0"

const searchPath = "/contiv/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Contiv is the image that Root is for.
func Contiv(name string) Image {
	return Image{Name: name, Entrypoint: []string{"/contiv/scripts/entrypoint"}, Env: []string{"PATH=" + searchPath}}
}

// binaries are those of this project that are in the image.
var binaries = []string{"netmaster", "netplugin", "netctl", "contivk8s", "netcontiv"}

// programs are those of other packages, by the Debian package they come in.
var programs = []struct{ path, from string }{
	{"/usr/sbin/nft", "nftables"},
	{"/bin/busybox", "busybox-static"}, // the entry point's shell
	{"/usr/sbin/ovs-vswitchd", "openvswitch-switch"},
	{"/usr/sbin/ovsdb-server", "openvswitch-switch"},
	{"/usr/bin/ovsdb-tool", "openvswitch-switch"},
	{"/usr/bin/ovs-vsctl", "openvswitch-switch"},
	{"/usr/bin/ovs-ofctl", "openvswitch-switch"},
	{"/usr/bin/ovs-appctl", "openvswitch-switch"},
}

// files are those without which the programs do not work, or not with everybody.
var files = []struct{ path, from string }{
	{"/usr/share/openvswitch/vswitch.ovsschema", "openvswitch-switch"},
	{"/etc/ssl/certs/ca-certificates.crt", "ca-certificates"},
}

// Root is the root file system of Contiv: the binaries that make build has put into the
// directory bin, from this machine nft, Open vSwitch and a shell, and the licences of all
// these. What is not installed here, or has no licence, is an error of kind NotFound.
func Root(bin string) (*Tree, error) {
	t, err := base(bin)
	if err != nil {
		return nil, err
	}
	return t, t.licenses(programsIn(bin))
}

// base is Root without licences.
func base(bin string) (*Tree, error) {
	t := &Tree{}
	for _, dir := range []string{"dev", "proc", "run", "sys"} {
		t.Dir(dir, 0o755)
	}
	t.Dir("tmp", 0o1777)
	t.Dir("root", 0o700)
	t.Link("var/run", "../run")
	t.Text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\ncontiv:x:65532:65532:Contiv netmaster:/var/lib/contiv:/bin/sh\n", 0o644)
	t.Text("etc/group", "root:x:0:\ncontiv:x:65532:\n", 0o644)
	t.Text("contiv/scripts/entrypoint", entrypoint, 0o755)
	for _, name := range binaries {
		source := filepath.Join(bin, name)
		if err := t.File("contiv/bin/"+name, source, 0o755); err != nil {
			return nil, errs.New(errs.NotFound, "program %s is missing: run make build: %w", source, err)
		}
	}
	for _, p := range programs {
		if _, err := os.Stat(p.path); err != nil {
			return nil, errs.New(errs.NotFound, "program %s is missing: install the package %s, or run scripts/deps: %w", p.path, p.from, err)
		}
		if err := t.Program(p.path); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		if err := t.File(f.path, f.path, 0o644); err != nil {
			return nil, errs.New(errs.NotFound, "file %s is missing: install the package %s, or run scripts/deps: %w", f.path, f.from, err)
		}
	}
	return t, t.shell()
}

// shell adds the names under which busybox is found.
func (t *Tree) shell() error {
	names, err := exec.Command("/bin/busybox", "--list").Output()
	if err != nil {
		return fmt.Errorf("run busybox: %w", err)
	}
	for _, name := range strings.Fields(string(names)) {
		if name != "busybox" {
			t.Link("bin/"+name, "busybox")
		}
	}
	return nil
}
