package embedded

import (
	"context"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestTurns: only so many large reads are made at a time; the next one is made when one of them
// is done. Whoever does not want to wait any longer leaves, and all else is served at once.
func TestTurns(t *testing.T) {
	reads := newTurns()
	began, end := make(chan struct{}, largeReads+1), make(chan struct{})
	slow := func(context.Context, any) (any, error) {
		began <- struct{}{}
		<-end
		return "answer", nil
	}
	large := &etcdserverpb.RangeRequest{Key: []byte("/a"), RangeEnd: []byte("/b"), Limit: 10_000}
	answers := make(chan error, largeReads+1)
	read := func() {
		resp, err := reads.unary(t.Context(), large, nil, slow)
		if resp != "answer" {
			t.Errorf("the answer is %v", resp)
		}
		answers <- err
	}
	for range largeReads {
		go read()
		<-began
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := reads.unary(ctx, large, nil, slow); status.Code(err) != codes.Canceled {
		t.Errorf("a large read too many, given up: %v, expected code Canceled", err)
	}
	at := func(context.Context, any) (any, error) { return "at once", nil }
	for what, req := range map[string]any{
		"one key":      &etcdserverpb.RangeRequest{Key: []byte("/a")},
		"few keys":     &etcdserverpb.RangeRequest{Key: []byte("/a"), RangeEnd: []byte("/b"), Limit: 10},
		"a count":      &etcdserverpb.RangeRequest{Key: []byte("/a"), RangeEnd: []byte("/b"), CountOnly: true},
		"a write":      &etcdserverpb.PutRequest{Key: []byte("/a")},
		"a lease":      &etcdserverpb.LeaseGrantRequest{TTL: 5},
		"another kind": nil,
	} {
		if resp, err := reads.unary(ctx, req, nil, at); resp != "at once" || err != nil {
			t.Errorf("%s: %v, %v; expected it to be served at once", what, resp, err)
		}
	}
	go read()
	end <- struct{}{} // one is done
	<-began           // so the one that waited is made
	close(end)
	for range largeReads + 1 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if len(reads) != 0 {
		t.Errorf("%d turns are still taken", len(reads))
	}
}
