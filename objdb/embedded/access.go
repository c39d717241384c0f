package embedded

import (
	"context"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/contiv/netplugin/utils/pki"
)

// agentCalls are the methods that agents may call at all; what they read is looked at too.
var agentCalls = map[string]bool{
	"/etcdserverpb.KV/Range":       true,
	"/etcdserverpb.Watch/Watch":    true,
	"/grpc.health.v1.Health/Check": true,
	"/grpc.health.v1.Health/Watch": true,
}

// caller returns who a call is of, and whether everything is allowed: to netmasters, and to
// plain clients where there are any.
func caller(ctx context.Context) (who pki.Peer, all bool) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return pki.Peer{}, false
	}
	info, ok := p.AuthInfo.(peerInfo)
	return info.Peer, ok && (!info.secure || info.Unit == pki.UnitMaster)
}

// readers are agents: they read what is below some prefixes, and nothing else.
type readers []string

// call refuses methods that are not for agents.
func (readers) call(who pki.Peer, method string) error {
	if who.Unit == pki.UnitAgent && agentCalls[method] {
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "%s may not call %s: agents only read the store", who, method[strings.LastIndexByte(method, '/')+1:])
}

// read refuses what is not all below what agents read. end is as in etcd's requests.
func (r readers) read(who pki.Peer, key, end []byte) error {
	from, to := string(key), string(end)
	if to == "" && from == "/" {
		return nil // a key that does not exist: how clients ask whether the store answers
	}
	for _, prefix := range r {
		if strings.HasPrefix(from, prefix) && (to == "" || to > from && to <= clientv3.GetPrefixRangeEnd(prefix)) {
			return nil
		}
	}
	return status.Errorf(codes.PermissionDenied, "%s may not read %q to %q: agents read %s", who, from, to, strings.Join(r, ", "))
}

func (r readers) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	who, all := caller(ctx)
	if all {
		return handle(ctx, req)
	}
	if err := r.call(who, info.FullMethod); err != nil {
		return nil, err
	}
	if q, ok := req.(*etcdserverpb.RangeRequest); ok {
		if err := r.read(who, q.Key, q.RangeEnd); err != nil {
			return nil, err
		}
	}
	return handle(ctx, req)
}

func (r readers) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	who, all := caller(ss.Context())
	if all {
		return handle(srv, ss)
	}
	if err := r.call(who, info.FullMethod); err != nil {
		return err
	}
	return handle(srv, &reading{ServerStream: ss, readers: r, who: who})
}

// reading is a stream of an agent: watches are looked at one by one. One that is refused ends
// the stream, and the others of that client with it.
type reading struct {
	grpc.ServerStream
	readers
	who pki.Peer
}

// RecvMsg implements grpc.ServerStream.
func (r *reading) RecvMsg(m any) error {
	if err := r.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if w, ok := m.(*etcdserverpb.WatchRequest); ok && w.GetCreateRequest() != nil {
		return r.read(r.who, w.GetCreateRequest().Key, w.GetCreateRequest().RangeEnd)
	}
	return nil
}
