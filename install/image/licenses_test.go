package image_test

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contiv/netplugin/install/image"
	"github.com/contiv/netplugin/netmaster/ui"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// contents are the files of the image by path, and their first bytes.
func contents(t *testing.T, root *image.Tree) map[string][]byte {
	t.Helper()
	var b bytes.Buffer
	if err := root.WriteTar(&b); err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if all["/"+h.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestLicenses: the image has the licence of every module of its Go programs, and the
// copyright file of every other program and library.
func TestLicenses(t *testing.T) {
	bin := labtest.Bin(t)
	root, err := image.Root(bin)
	if err != nil {
		t.Fatal(err)
	}
	files := contents(t, root)
	notice := string(files[image.NoticeFile])
	modules, mozilla := 0, 0
	for _, name := range image.Binaries() {
		info, err := buildinfo.ReadFile(filepath.Join(bin, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, dep := range info.Deps {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			modules++
			dir := image.LicenseDir + "/" + dep.Path + "@" + dep.Version + "/"
			licence := textBelow(files, dir)
			if len(licence) < 300 {
				t.Errorf("%s: module %s %s has no licence, only %q", name, dep.Path, dep.Version, licence)
			}
			if strings.Contains(licence, "Mozilla Public License") {
				mozilla++
				if !strings.Contains(notice, "    "+dep.Path+" "+dep.Version+"  https://") {
					t.Errorf("the notice does not say where the source of %s %s is", dep.Path, dep.Version)
				}
			}
		}
	}
	if modules < 50 || mozilla == 0 {
		t.Errorf("looked at %d modules, %d of the Mozilla Public License", modules, mozilla)
	}
	page, err := ui.Packages()
	if err != nil || len(page) == 0 {
		t.Fatalf("the page contains %v, %v", page, err)
	}
	for _, p := range page {
		if licence := textBelow(files, image.LicenseDir+"/npm/"+p.Name+"@"+p.Version+"/"); len(licence) < 300 {
			t.Errorf("npm package %s %s has no licence, only %q", p.Name, p.Version, licence)
		}
	}
	programs := 0
	for path, content := range files {
		if !bytes.HasPrefix(content, []byte("\x7fELF")) || strings.HasPrefix(path, "/contiv/bin/") {
			continue
		}
		programs++
		owner := debianPackage(t, path)
		if len(files["/usr/share/doc/"+owner+"/copyright"]) < 300 {
			t.Errorf("%s of package %s is without its copyright file", path, owner)
		}
		if !strings.Contains(notice, "    "+owner+" ") {
			t.Errorf("the notice does not say where the source of %s is", owner)
		}
	}
	if programs < 10 {
		t.Errorf("looked at %d programs and libraries", programs)
	}
	if len(files["/usr/share/common-licenses/GPL-2"]) == 0 {
		t.Error("the text of the GNU General Public License is missing")
	}
}

func textBelow(files map[string][]byte, dir string) string {
	var b strings.Builder
	for path, content := range files {
		if strings.HasPrefix(path, dir) {
			b.Write(content)
		}
	}
	return b.String()
}

// debianPackage is the one that has installed a file, under its name before directories
// moved into /usr, after it, or behind a link.
func debianPackage(t *testing.T, path string) string {
	t.Helper()
	short := strings.TrimPrefix(path, "/usr")
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, short, real, strings.TrimPrefix(real, "/usr")} {
		if out, err := exec.Command("dpkg-query", "-S", name).Output(); err == nil {
			owner, _, _ := strings.Cut(string(out), ":")
			return owner
		}
	}
	t.Fatalf("no package has %s", path)
	return ""
}
