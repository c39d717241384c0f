package support

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/contiv/netplugin/state/doctorapi"
)

// reserve is what is kept free for the manifest, in bytes.
const reserve = 32 << 10

// archive is a bundle that is being written.
type archive struct {
	tar  *tar.Writer
	gzip *gzip.Writer
	left int // bytes
	now  time.Time
	list doctorapi.Manifest
}

func newArchive(w io.Writer, size int, now time.Time) *archive {
	z := gzip.NewWriter(w)
	return &archive{tar: tar.NewWriter(z), gzip: z, left: size - reserve, now: now}
}

// add writes a file, or notes why there is none. What does not fit is cut off.
func (a *archive) add(name string, text []byte, why error) error {
	f := doctorapi.File{Name: name}
	switch {
	case why != nil:
		f.Missing = why.Error()
		a.list.Files = append(a.list.Files, f)
		return nil
	case len(text) > a.left:
		f.Missing = fmt.Sprintf("%d bytes of it did not fit: see --size", len(text)-a.left)
		text = text[:a.left]
	}
	a.left -= len(text)
	f.Size = len(text)
	a.list.Files = append(a.list.Files, f)
	return a.write(name, text)
}

func (a *archive) write(name string, text []byte) error {
	if err := a.tar.WriteHeader(&tar.Header{Name: "contiv-support/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: a.now}); err != nil {
		return err
	}
	_, err := a.tar.Write(text)
	return err
}

// close writes the manifest.
func (a *archive) close() error {
	text, err := json.MarshalIndent(a.list, "", " ")
	if err != nil {
		return err
	}
	return errors.Join(a.write("manifest.json", text), a.tar.Close(), a.gzip.Close())
}
