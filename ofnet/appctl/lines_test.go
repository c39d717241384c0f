package appctl

import (
	"bufio"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// read returns the lines of a reply.
func read(reply string) (lines []string, refused string, err error) {
	r := lineReader{bufio.NewReader(strings.NewReader(reply))}
	raw, err := r.reply(func(line []byte) { lines = append(lines, string(line)) })
	return lines, string(raw), err
}

// TestLines reads replies as they come, with the result in any place.
func TestLines(t *testing.T) {
	for reply, want := range map[string][]string{
		`{"error":null,"id":1,"result":"a\nb\n"}`:        {"a", "b"},
		` { "id" : 1 , "result" : "a\n\nb" } `:           {"a", "", "b"},
		`{"result":""}`:                                  nil,
		`{"id":"x","result":"\"\\\/\t\u00e4\u0041\r\n"}`: {"\"\\/\täA\r"},
	} {
		lines, refused, err := read(reply)
		if err != nil || refused != "" || !slices.Equal(lines, want) {
			t.Errorf("%s: %q, %s, %v; want %q", reply, lines, refused, err, want)
		}
	}
	if _, refused, err := read(`{"id":1,"result":null,"error":"no such\nthing"}`); err != nil || refused != `"no such\nthing"` {
		t.Errorf("an error: %s, %v", refused, err)
	}
	for _, reply := range []string{
		"", "{", "[]", `{"result"`, `{"result":"a`, `{"result":"\x"}`, `{"result":"\u12g4"}`, `{"id":1}`, `{"id":}`, `{"result":[1]}`,
		`{"result":"` + strings.Repeat("a", maxLine+1) + `"}`, `{"` + strings.Repeat("a", maxLine+1) + `":1}`, `{"id":` + strings.Repeat("1", maxLine+2) + `}`,
	} {
		if lines, refused, err := read(reply); err == nil {
			t.Errorf("%.40s is read: %q, %s", reply, lines, refused)
		}
	}
}

// FuzzLines compares with encoding/json.
func FuzzLines(f *testing.F) {
	f.Add("a\nb\\\"\tä")
	f.Fuzz(func(t *testing.T, text string) {
		_, _, _ = read(text) // whatever it is
		text = strings.ToValidUTF8(text, "")
		b, err := json.Marshal(map[string]any{"error": nil, "id": 1, "result": text})
		if err != nil || len(text) > maxLine {
			return
		}
		lines, refused, err := read(string(b))
		if want := strings.TrimSuffix(text, "\n"); err != nil || refused != "" || strings.Join(lines, "\n") != want {
			t.Errorf("%q: %q, %s, %v", text, lines, refused, err)
		}
	})
}
