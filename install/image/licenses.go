package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/contiv/netplugin/netmaster/ui"
	"github.com/contiv/netplugin/utils/errs"
)

// Where licences and notices are in the image.
const (
	LicenseDir = "/usr/share/doc/contiv/licenses" // PATH@VERSION/LICENSE …, of Go modules; npm/NAME@VERSION/LICENSE
	NoticeFile = "/usr/share/doc/contiv/NOTICE"   // what is in the image, and where its source is
)

var (
	// legalName are the files of a module that have to go with its code.
	legalName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents|authors)`)
	// licenseName are those that say what is allowed.
	licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright)`)
)

// licenses adds the licences and notices of all that is in the tree: of the modules of the
// binaries, of netmaster's page and of the Debian packages of the rest.
func (t *Tree) licenses(programs []string) error {
	modules, err := Modules(programs...)
	if err != nil {
		return err
	}
	packages, err := t.Packages()
	if err != nil {
		return err
	}
	var weak []Module // of a licence that asks for the source of what it covers
	for _, m := range modules {
		copyleft, err := t.moduleLicense(m)
		if err != nil {
			return err
		}
		if copyleft {
			weak = append(weak, m)
		}
	}
	if err := t.pageLicenses(); err != nil {
		return err
	}
	for _, p := range packages {
		if err := t.File(p.Copyright(), p.Copyright(), 0o644); err != nil {
			return errs.New(errs.NotFound, "package %s has no licence: file %s: %w", p.Name, p.Copyright(), err)
		}
	}
	// Copyright files name these instead of repeating them.
	common, err := filepath.Glob("/usr/share/common-licenses/*")
	if err != nil || len(common) == 0 {
		return errs.New(errs.NotFound, "directory /usr/share/common-licenses is missing: the image is made on Debian")
	}
	for _, file := range common {
		if err := t.File(file, file, 0o644); err != nil {
			return err
		}
	}
	t.Text(NoticeFile, notice(packages, weak), 0o644)
	return nil
}

// pageLicenses adds the licences of what netmaster's page contains.
func (t *Tree) pageLicenses() error {
	packages, err := ui.Packages()
	for _, p := range packages {
		t.Text(LicenseDir+"/npm/"+p.Name+"@"+p.Version+"/LICENSE", p.License, 0o644)
	}
	return err
}

// moduleLicense adds the texts that go with a module, and reports whether one of them is the
// Mozilla Public License.
func (t *Tree) moduleLicense(m Module) (mozilla bool, err error) {
	entries, err := os.ReadDir(m.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, errs.New(errs.NotFound, "source of module %s is missing: run go mod download %[1]s: %w", m.Path+"@"+m.Version, err)
	}
	if err != nil {
		return false, err
	}
	licensed := false
	for _, e := range entries {
		if e.IsDir() || !legalName.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return false, err
		}
		licensed = licensed || licenseName.MatchString(e.Name())
		mozilla = mozilla || strings.Contains(string(text[:min(len(text), 400)]), "Mozilla Public License")
		t.Text(LicenseDir+"/"+m.Path+"@"+m.Version+"/"+e.Name(), string(text), 0o644)
	}
	if !licensed {
		return false, errs.New(errs.NotFound, "module %s@%s has no licence in %s, so it cannot be in the image", m.Path, m.Version, m.Dir)
	}
	return mozilla, nil
}

// notice says what the image consists of and where the source of its copyleft parts is.
func notice(packages []Package, weak []Module) string {
	var b strings.Builder
	b.WriteString(`Contiv netplugin, under the Apache License 2.0 (https://github.com/contiv/netplugin).

Its programs in /contiv/bin contain Go modules, netmaster also npm packages. Licences and notices of each are in
` + LicenseDir + `. These are, in whole or in part, under the Mozilla Public License 2.0, and
are not changed; their source is at the addresses given here:

`)
	for _, m := range weak {
		fmt.Fprintf(&b, "    %s %s  %s\n", m.Path, m.Version, m.SourceURL())
	}
	b.WriteString(`
The other programs and libraries, and some files, come from these packages of Debian and are
not changed. Their licences are in /usr/share/doc/PACKAGE/copyright and
/usr/share/common-licenses; some are the GNU General Public License, version 2 or 3, or the GNU
Lesser General Public License.

    package, version  source

`)
	for _, p := range packages {
		fmt.Fprintf(&b, "    %s %s  %s\n", p.Name, p.Version, p.SourceURL())
	}
	b.WriteString(`
The complete source code of each is at the address given with it, and with "apt-get source
SOURCE=VERSION" on a machine with Debian's deb-src lines. Whoever gave you this image also
gives you that source code on request, for three years, at no more than the cost of doing so.
`)
	return b.String()
}

// SourceURL is where the source of the module is, as an archive.
func (m Module) SourceURL() string {
	if m.Path == standardLibrary {
		return "https://go.dev/dl/" + m.Version + ".src.tar.gz"
	}
	upper := regexp.MustCompile(`[A-Z]`)
	escaped := upper.ReplaceAllStringFunc(m.Path, func(c string) string { return "!" + strings.ToLower(c) })
	return "https://proxy.golang.org/" + escaped + "/@v/" + m.Version + ".zip"
}

// SourceURL is where all versions of Debian's source packages are kept.
func (p Package) SourceURL() string {
	return "https://snapshot.debian.org/package/" + p.Source + "/" + p.SourceVersion + "/"
}

// programsIn are the paths of this project's binaries in a directory.
func programsIn(bin string) []string {
	all := slices.Clone(binaries)
	for i, name := range all {
		all[i] = filepath.Join(bin, name)
	}
	return all
}
