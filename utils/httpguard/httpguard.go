// Package httpguard keeps the pages of other web sites from using a daemon's API through the
// browser of somebody who may: by forms and scripts (CSRF), and by names that lead to the
// daemon's address (DNS rebinding). Other clients notice nothing of it, as long as they say
// that what they send is JSON.
package httpguard

import (
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/contiv/netplugin/utils/httproutes"
)

// Config says by which names the daemon may be called.
type Config struct {
	// Hosts are names besides localhost; addresses need not be named, since no name leads to
	// them.
	Hosts []string
	// Names are further ones, such as those of the daemon's certificate; nil: none.
	Names func() []string
}

// Guard refuses what looks like the request of another site's page: 403 for a foreign Host
// or Origin, 415 for a body that a form can send. It passes on everything else.
func Guard(cfg Config, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !cfg.knows(r.Host):
			httproutes.Refuse(w, http.StatusForbidden, fmt.Sprintf("host %.80q is not a name of this daemon: use an address (--allowed-hosts of netmaster adds names)", r.Host))
		case !sameSite(r):
			httproutes.Refuse(w, http.StatusForbidden, fmt.Sprintf("origin %.80q is another site: pages of other sites may not use this API", r.Header.Get("Origin")))
		case hasBody(r) && !isJSON(r):
			httproutes.Refuse(w, http.StatusUnsupportedMediaType, fmt.Sprintf("content type %.80q: expected application/json", r.Header.Get("Content-Type")))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// knows reports whether a Host header (RFC 9110 section 7.2) is an address or a name of the
// daemon. Only HTTP/1.0 leaves it out.
func (c Config) knows(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil || host == "" {
		return true
	}
	is := func(known string) bool { return strings.EqualFold(known, strings.TrimSuffix(name, ".")) }
	return is("localhost") || slices.ContainsFunc(c.Hosts, is) || c.Names != nil && slices.ContainsFunc(c.Names(), is)
}

// sameSite reports whether a request is none of a browser for another site's page (RFC
// 6454; W3C Fetch Metadata for requests without an origin).
func sameSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	case "same-site", "cross-site":
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return false
		}
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	u, err := url.Parse(origins[0])
	return len(origins) == 1 && err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

func hasBody(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return r.ContentLength != 0
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}
