package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/contiv/netplugin/netmaster/authz"
	"github.com/contiv/netplugin/utils/errs"
)

// maxLine bounds a line that is read back, in bytes.
const maxLine = 64 << 10

// source is a sink that can be read back.
type source interface {
	Readers() ([]io.ReadCloser, error)
}

// Serve answers GET authz.PathAudit with the records of this netmaster that a Query
// chooses, as JSON lines, and passes on everything else. A gate must stand before it.
func Serve(l *Log, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != authz.PathAudit || r.Method != http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		q, err := parse(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := l.serve(w, r, q); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

func parse(r *http.Request) (Query, error) {
	values := r.URL.Query()
	q := Query{User: values.Get(QueryUser), Denied: values.Get(QueryDenied) == "true"}
	if text := values.Get(QuerySince); text != "" {
		var err error
		if q.Since, err = time.Parse(time.RFC3339, text); err != nil {
			return q, errs.New(errs.Invalid, "query %s=%.40q: expected a time like 2026-01-02T15:04:05Z", QuerySince, text)
		}
	}
	return q, nil
}

// serve writes the records; after the first byte there is no error to answer with.
func (l *Log) serve(w http.ResponseWriter, r *http.Request, q Query) error {
	src, ok := l.sink.(source)
	if !ok {
		return errors.New("this netmaster sends its audit log to syslog; read it there")
	}
	lines, stop := l.follow()
	defer stop()
	files, err := src.Readers()
	if err != nil {
		return err
	}
	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	for _, f := range files {
		in := bufio.NewScanner(f)
		in.Buffer(nil, maxLine)
		for in.Scan() {
			_ = rc.SetWriteDeadline(time.Now().Add(time.Minute)) // a test's recorder has none
			tell(w, q, in.Bytes())
		}
		f.Close()
	}
	if r.URL.Query().Get(QueryFollow) != "true" {
		return nil
	}
	_ = rc.SetReadDeadline(time.Time{})
	for {
		_ = rc.Flush()
		select {
		case line := <-lines:
			_ = rc.SetWriteDeadline(time.Now().Add(time.Minute))
			if !tell(w, q, line) {
				return nil
			}
		case <-r.Context().Done():
			return nil
		}
	}
}

// tell writes a line if it is wanted, and reports whether the client is still there.
func tell(w io.Writer, q Query, line []byte) bool {
	var rec Record
	if json.Unmarshal(line, &rec) != nil || !q.wants(&rec) { // half a line, of a netmaster that was killed
		return true
	}
	text, err := json.Marshal(rec)
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	return err == nil
}
