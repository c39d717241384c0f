package cni

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/google/go-cmp/cmp"
)

func TestParseArgs(t *testing.T) {
	got := ParseArgs("IgnoreUnknown=1;A=x=y;;odd; B =z;A2=")
	want := map[string]string{"IgnoreUnknown": "1", "A": "x=y", "B": "z", "A2": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPost(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Post(filepath.Join(dir, "none.sock"), "/x", OtherTimeout, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a socket: %v", err)
	}
	agent := filepath.Join(dir, "agent.sock")
	serve(t, agent, func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte(r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + body.String()))
	})
	status, body, err := Post(agent, "/x", OtherTimeout, map[string]int{"a": 1})
	if want := `POST /x application/json {"a":1}`; err != nil || status != http.StatusTeapot || string(body) != want {
		t.Errorf("%d %q %v, expected %q", status, body, err, want)
	}
	if _, _, err := Post(agent, "/x", OtherTimeout, func() {}); err == nil {
		t.Error("a function can be encoded")
	}
}

// An agent that never answers does not keep a runtime waiting.
func TestPostTimesOut(t *testing.T) {
	agent := filepath.Join(t.TempDir(), "agent.sock")
	l, err := net.Listen("unix", agent)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, _, err := Post(agent, "/x", time.Millisecond, nil); !os.IsTimeout(err) {
		t.Errorf("%v, expected a timeout", err)
	}
}

func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plugin.log")
	var fallback bytes.Buffer
	if err := os.WriteFile(path, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, maxLog); err != nil {
		t.Fatal(err)
	}
	log := OpenLog(path, &fallback, "CMD=ADD")
	log.Printf("said %s", "this")
	log.Close()
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(string(text), " CMD=ADD msg=\"said this\"\n") || fallback.Len() > 0 {
		t.Errorf("%v, the log has %q, standard error %q", err, text, fallback.String())
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, mode %v", err, info.Mode())
	}
	if info, err := os.Stat(path + ".old"); err != nil || info.Size() != maxLog {
		t.Errorf("%v, the old log has %d bytes", err, info.Size())
	}
	log = OpenLog(filepath.Join(path, "below a file"), &fallback, "CMD=DEL")
	log.Printf("said that")
	log.Close()
	if !strings.Contains(fallback.String(), `CMD=DEL msg="said that"`) {
		t.Errorf("standard error has %q", fallback.String())
	}
}

func TestResultRefusesNonsense(t *testing.T) {
	for name, a := range map[string]Attached{
		"address": {IPv4: "10.1.1.1"}, "route": {IPv4: "10.1.1.1/24", Routes: []Route{{Dst: "everywhere"}}},
	} {
		if res, err := a.Result(nil, "eth0", "/ns"); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
}

func TestWriteError(t *testing.T) {
	for version, want := range map[string]string{
		"0.2.0": `{"cniVersion":"0.2.0","code":11,"msg":"m","details":"d"}` + "\n",
		"":      `{"cniVersion":"1.1.0","code":11,"msg":"m","details":"d"}` + "\n",
	} {
		var out bytes.Buffer
		if err := WriteError(&out, version, types.NewError(CodeTryLater, "m", "d")); err != nil || out.String() != want {
			t.Errorf("%v, %q, expected %q", err, out.String(), want)
		}
	}
}

// serve answers on a unix socket until the test ends.
func serve(t *testing.T, path string, h http.HandlerFunc) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
}
