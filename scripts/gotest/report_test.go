package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	tests := []struct {
		name   string
		events []string
		want   string
		failed int
	}{
		{
			name: "passing package shows its closing line",
			events: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN TestA\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Output":"PASS\n"}`,
				`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: "ok  \tp\t0.1s\n1 passed, 0 failed, 0 skipped\n",
		},
		{
			name: "failing test shows what it said",
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"a_test.go:3: no\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"skip","Package":"p","Test":"TestB"}`,
				`{"Action":"output","Package":"p","Output":"FAIL\tp\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want:   "a_test.go:3: no\nFAIL\tp\nfailed: p TestA\n0 passed, 1 failed, 1 skipped\n",
			failed: 1,
		},
		{
			name: "package that does not build counts as a failure",
			events: []string{
				`{"Action":"build-output","ImportPath":"p","Output":"p.go:1: bad\n"}`,
				`{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}`,
				`{"Action":"fail","Package":"p","FailedBuild":"p"}`,
			},
			want:   "p.go:1: bad\nFAIL\tp [build failed]\nfailed: p\n0 passed, 1 failed, 0 skipped\n",
			failed: 1,
		},
		{
			name: "test that was cut short shows what it had said",
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: oh\n"}`,
				`{"Action":"output","Package":"p","Output":"FAIL\tp\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want:   "panic: oh\nFAIL\tp\nfailed: p\n0 passed, 1 failed, 0 skipped\n",
			failed: 1,
		},
		{name: "what is no event is passed on", events: []string{"go: no such package"}, want: "go: no such package\n0 passed, 0 failed, 0 skipped\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out)
			if err := r.read(strings.NewReader(strings.Join(tt.events, "\n") + "\n")); err != nil {
				t.Fatal(err)
			}
			r.close()
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			if r.failed != tt.failed {
				t.Errorf("failed = %d, want %d", r.failed, tt.failed)
			}
		})
	}
}
