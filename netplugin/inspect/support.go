package inspect

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/errs"
)

// supportTimeout bounds the making of one file of a support bundle.
const supportTimeout = 6 * time.Second

// support answers with a file for a support bundle: 404 for one that is not known, 503 while
// it cannot be made.
func (s Sources) support(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	write, ok := s.Support[name]
	if !ok {
		http.Error(w, fmt.Sprintf("there is no file %.40q for a support bundle", name), http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), supportTimeout)
	defer cancel()
	file := &bounded{left: doctorapi.MaxFile}
	if err := write(ctx, file); err != nil && !errs.Is(err, errs.Exhausted) {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(file.Bytes()) // a client that has gone is nobody's error
}

// bounded takes as much as fits, and says so at its end.
type bounded struct {
	bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.left {
		b.left = 0
		_, _ = b.WriteString("\nthe rest does not fit\n")
		return 0, errs.New(errs.Exhausted, "a file of a support bundle has at most %d bytes", doctorapi.MaxFile)
	}
	b.left -= len(p)
	return b.Buffer.Write(p)
}
