package httproutes

import "net/http"

// maxReason is how many bytes of an error's text a Recorder keeps.
const maxReason = 200

// Recorder passes an answer on, and remembers its status and how the text of an error begins.
type Recorder struct {
	http.ResponseWriter
	Code   int    // 0 before the answer
	Reason []byte // of a status from 400 on; up to 200 bytes
}

// WriteHeader implements http.ResponseWriter.
func (r *Recorder) WriteHeader(code int) {
	if r.Code == 0 && code >= 200 {
		r.Code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *Recorder) Write(p []byte) (int, error) {
	if r.Code == 0 {
		r.Code = http.StatusOK
	}
	if room := maxReason - len(r.Reason); r.Code >= 400 && room > 0 {
		r.Reason = append(r.Reason, p[:min(room, len(p))]...)
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *Recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Ended is the status of an answer whose handler has ended, by a panic unless it has returned.
func (r *Recorder) Ended(returned bool) int {
	switch {
	case r.Code != 0:
		return r.Code
	case returned:
		return http.StatusOK
	}
	return http.StatusInternalServerError
}
