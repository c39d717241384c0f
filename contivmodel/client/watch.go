package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

const (
	// silence is after what time without any sign of life a stream is given up; servers
	// give one every 15 s.
	silence = time.Minute

	firstPause = 100 * time.Millisecond // before a stream is asked for again
	longPause  = 5 * time.Second
)

// Watch calls take with what there is of the given kinds (type strings; none means all)
// and then with what happens to it, until ctx ends, which is no error, or take returns
// an error, which is returned. The first notice is a reset. When the stream breaks it
// goes on where it was, at any of the netmasters; a notice may come twice then, and
// another reset says that something was missed: this is all there is now.
//
// It returns an error when a netmaster refuses, or none can be reached at the start.
func (c *Client) Watch(ctx context.Context, kinds []string, take func(contivmodel.Notice) error) error {
	w := &watch{c: c, path: "/api/v1/watch", take: take}
	if len(kinds) > 0 {
		w.path += "?" + url.Values{"kind": {strings.Join(kinds, ",")}}.Encode()
	}
	again := retry.New(firstPause, longPause)
	for ctx.Err() == nil {
		told := w.told
		err := w.once(ctx)
		var stop *stopError
		switch {
		case errors.As(err, &stop):
			return stop.err
		case ctx.Err() != nil:
			return nil
		case w.told == 0:
			return err
		case w.told > told:
			again.Reset()
		}
		again.Wait(ctx)
	}
	return nil
}

// watch is one Watch.
type watch struct {
	c    *Client
	path string
	take func(contivmodel.Notice) error
	id   string // of the last event that had one
	told int    // how many notices have been taken
}

// stopError is an error that another try does not fix.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }

// once follows one stream to its end.
func (w *watch) once(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alarm := time.AfterFunc(silence, func() { cancel(errs.New(errs.Timeout, "the server is silent")) })
	defer alarm.Stop()
	resp, err := w.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	in := bufio.NewReader(resp.Body)
	for {
		alarm.Reset(silence)
		data, id, err := readEvent(in, alarm)
		if err != nil {
			return err
		}
		if data != nil {
			var n contivmodel.Notice
			if err := json.Unmarshal(data, &n); err != nil {
				return &stopError{errs.Wrap(errs.Internal, fmt.Errorf("the event is not what was expected: %w", err))}
			}
			w.told++
			if err := w.take(n); err != nil {
				return &stopError{err}
			}
		}
		if id != "" {
			w.id = id
		}
	}
}

// connect asks for the stream.
func (w *watch) connect(ctx context.Context) (*http.Response, error) {
	header := map[string]string{"Accept": "text/event-stream"}
	if w.id != "" {
		header["Last-Event-ID"] = w.id
	}
	return w.c.open(ctx, w.path, header)
}

// open asks one netmaster after the other for an answer that stays open.
func (c *Client) open(ctx context.Context, path string, header map[string]string) (*http.Response, error) {
	var failed []string
	for _, base := range c.bases {
		req, err := c.request(ctx, http.MethodGet, base, path, nil)
		if err != nil {
			return nil, &stopError{err}
		}
		for name, value := range header {
			req.Header.Set(name, value)
		}
		resp, err := c.stream.Do(req)
		switch {
		case err != nil:
			failed = append(failed, err.Error())
		case resp.StatusCode == http.StatusOK:
			return resp, nil
		default:
			err := readAnswer(resp, nil)
			if resp.StatusCode <= http.StatusInternalServerError {
				return nil, &stopError{err}
			}
			failed = append(failed, fmt.Sprintf("%s: %v", base, err))
		}
	}
	return nil, errs.New(errs.Unavailable, "%s", strings.Join(failed, "; "))
}

// readEvent reads lines up to the next empty one (WHATWG HTML, section 9.2.6). data is
// nil where there is none. Each line puts the alarm off.
func readEvent(in *bufio.Reader, alarm *time.Timer) (data []byte, id string, err error) {
	for {
		line, err := readLine(in)
		if err != nil {
			return nil, "", err
		}
		alarm.Reset(silence)
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0:
			return data, id, nil
		case string(field) == "id":
			id = string(value)
		case string(field) == "data":
			data = append(data, value...)
		}
	}
}

// readLine reads a line of at most maxAnswer bytes, without its end.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if len(line) > maxAnswer {
				return nil, errs.New(errs.Internal, "an event is longer than %d bytes", maxAnswer)
			}
		case errors.Is(err, io.EOF):
			return nil, errs.New(errs.Unavailable, "the server ended the stream")
		case err != nil:
			return nil, errs.Wrap(errs.Unavailable, fmt.Errorf("read the stream: %w", err))
		default:
			return bytes.TrimRight(line, "\r\n"), nil
		}
	}
}
