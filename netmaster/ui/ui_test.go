package ui

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// maxPacked bounds what a browser loads, in bytes.
const maxPacked = 300_000

func ask(t *testing.T, p *Page, method, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Result()
}

func read(t *testing.T, r io.Reader) []byte {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestServed: the files come with the headers that bind a browser, packed for whoever takes it,
// and not again to whoever has them.
func TestServed(t *testing.T) {
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]string{"/ui/": "text/html; charset=utf-8", "/ui/app.js": "text/javascript; charset=utf-8", "/ui/app.css": "text/css; charset=utf-8", "/ui/icon.svg": "image/svg+xml"} {
		plain, packed := ask(t, p, "GET", path), ask(t, p, "GET", path, "Accept-Encoding", "br, gzip;q=0.5")
		for _, a := range []*http.Response{plain, packed} {
			h := a.Header
			if a.StatusCode != http.StatusOK || h.Get("Content-Type") != kind || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s: %d %v", path, a.StatusCode, h)
			}
			for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
				if !strings.Contains(h.Get("Content-Security-Policy"), part) || strings.Contains(h.Get("Content-Security-Policy"), "unsafe") {
					t.Errorf("%s: policy %q, want %s and nothing unsafe", path, h.Get("Content-Security-Policy"), part)
				}
			}
		}
		if packed.Header.Get("Content-Encoding") != "gzip" || plain.Header.Get("Content-Encoding") != "" {
			t.Fatalf("%s: packed %q, plain %q", path, packed.Header.Get("Content-Encoding"), plain.Header.Get("Content-Encoding"))
		}
		unpacked, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(read(t, unpacked), read(t, plain.Body)) {
			t.Errorf("%s: packed is another content", path)
		}
		if a := ask(t, p, "GET", path, "If-None-Match", plain.Header.Get("ETag")); a.StatusCode != http.StatusNotModified || len(read(t, a.Body)) != 0 {
			t.Errorf("%s again: %d", path, a.StatusCode)
		}
	}
	if a := ask(t, p, "GET", "/ui/"); a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the page may be kept: %q", a.Header.Get("Cache-Control"))
	}
}

// TestPaths: only the page's paths are answered, and only reading.
func TestPaths(t *testing.T) {
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/", http.StatusFound},
		{"GET", "/ui", http.StatusFound},
		{"HEAD", "/ui/", http.StatusOK},
		{"POST", "/", http.StatusNotFound},
		{"DELETE", "/ui/", http.StatusNotFound},
		{"GET", "/ui/none", http.StatusNotFound},
		{"GET", "/ui/../ui.go", http.StatusNotFound},
		{"GET", "/ui/dist/app.js", http.StatusNotFound},
	} {
		a := ask(t, p, c.method, c.path)
		if a.StatusCode != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, a.StatusCode, c.want)
		}
		if c.want == http.StatusFound && a.Header.Get("Location") != Prefix {
			t.Errorf("%s leads to %q", c.path, a.Header.Get("Location"))
		}
	}
	for path, want := range map[string]bool{"/": true, "/ui": true, "/ui/x": true, "/uix": false, "/x": false, "": false, "/api/v1/networks/": false} {
		if Serves(path) != want {
			t.Errorf("%q: served: %t", path, !want)
		}
	}
}

// TestFiles: all a browser loads is small, and refers to nothing outside of this netmaster.
func TestFiles(t *testing.T) {
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	packed := 0
	foreign := regexp.MustCompile(`(?:https?:)?//[a-zA-Z0-9-]+\.[a-zA-Z]{2,}[^"'\s)]*`)
	for path, a := range p.assets {
		if path != Prefix {
			packed += len(a.packed)
		}
		for _, url := range foreign.FindAllString(string(a.plain), -1) {
			if !strings.HasPrefix(url, "http://www.w3.org/") { // names of XML namespaces, which are not loaded
				t.Errorf("%s refers to %s", path, url)
			}
		}
		for _, word := range []string{"dangerouslySetInnerHTML=", "document.write(", "eval("} {
			if strings.Contains(string(a.plain), word) {
				t.Errorf("%s contains %s", path, word)
			}
		}
	}
	t.Logf("%d bytes packed", packed)
	if packed > maxPacked {
		t.Errorf("%d bytes packed, want at most %d", packed, maxPacked)
	}
}
