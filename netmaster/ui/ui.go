package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// Prefix is the path that the page is below.
const Prefix = "/ui/"

// policy allows the page its own files and requests to the API of the same netmaster, and
// nothing that makes text into markup or code (W3C Content Security Policy Level 3, Trusted
// Types).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

//go:embed dist
var files embed.FS

// kinds are the media types of the files, by the ending of their names.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".json": "application/json",
}

// asset is a file as it is sent.
type asset struct {
	kind   string
	plain  []byte
	packed []byte // by gzip (RFC 1952)
	tag    string // entity tag (RFC 9110 section 8.8.3)
}

// Page is the http.Handler of Prefix, and of "/", which leads there. It is immutable and holds
// nothing secret.
type Page struct {
	assets map[string]asset // by path
}

// New returns the page of this build. It fails if a file has an ending of which the media type
// is not known.
func New() (*Page, error) {
	p := &Page{assets: map[string]asset{}}
	err := fs.WalkDir(files, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		a, err := newAsset(name, content)
		p.assets[Prefix+strings.TrimPrefix(name, "dist/")] = a
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the files of the page: %w", err)
	}
	p.assets[Prefix] = p.assets[Prefix+"index.html"]
	return p, nil
}

func newAsset(name string, content []byte) (asset, error) {
	kind, ok := kinds[path.Ext(name)]
	if !ok {
		return asset{}, fmt.Errorf("%s: no media type is known for this ending", name)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return asset{}, err
	}
	if _, err = w.Write(content); err == nil {
		err = w.Close()
	}
	sum := sha256.Sum256(content)
	return asset{kind: kind, plain: content, packed: packed.Bytes(), tag: hex.EncodeToString(sum[:12])}, err
}

// Serves reports whether a path is the page's.
func Serves(path string) bool {
	return path == "/" || path == strings.TrimSuffix(Prefix, "/") || strings.HasPrefix(path, Prefix)
}

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.NotFound(w, r)
		return
	}
	if r.URL.Path+"/" == Prefix || r.URL.Path == "/" {
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, Prefix, http.StatusFound)
		return
	}
	a, ok := p.assets[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	a.send(w, r)
}

// send answers with the file, in the form that the client accepts, or says that the client has
// it already.
func (a asset) send(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Vary", "Accept-Encoding")
	if strings.HasPrefix(a.kind, "text/html") {
		h.Set("Cache-Control", "no-store")
	} else {
		h.Set("Cache-Control", "no-cache") // it is of the version that runs
	}
	content, tag := a.plain, `"`+a.tag+`"`
	if acceptsGzip(r) {
		content, tag = a.packed, `"`+a.tag+`-gz"`
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // a client that has gone is nobody's error
	}
}

// acceptsGzip reads Accept-Encoding (RFC 9110 section 12.5.3).
func acceptsGzip(r *http.Request) bool {
	for item := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, weight, _ := strings.Cut(item, ";")
		if strings.TrimSpace(coding) != "gzip" {
			continue
		}
		q, found := strings.CutPrefix(strings.TrimSpace(weight), "q=")
		value, err := strconv.ParseFloat(q, 64)
		return !found || err == nil && value > 0
	}
	return false
}
