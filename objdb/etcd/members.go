package etcd

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/contiv/netplugin/objdb"
)

// memberWithin is how long a member may take to accept a connection.
const memberWithin = time.Second

// Members implements objdb.Membership.
func (s *Store) Members(ctx context.Context) ([]objdb.Member, error) {
	ctx, over := s.life.Bound(ctx)
	defer over()
	list, err := s.c.MemberList(ctx)
	if err != nil {
		return nil, s.wrap(err, "list the members")
	}
	members := make([]objdb.Member, len(list.Members))
	var all sync.WaitGroup
	for i, m := range list.Members {
		members[i].Name = m.Name
		all.Go(func() {
			if err := accepts(ctx, m.ClientURLs); err != nil {
				members[i].Err = err.Error()
			}
		})
	}
	all.Wait()
	return members, nil
}

// accepts reports whether a member accepts connections at one of its addresses.
func accepts(ctx context.Context, urls []string) error {
	ctx, cancel := context.WithTimeout(ctx, memberWithin)
	defer cancel()
	err := errors.New("it has not told its address yet")
	for _, text := range urls {
		u, bad := url.Parse(text)
		if bad != nil {
			err = bad
			continue
		}
		var conn net.Conn
		if conn, err = new(net.Dialer).DialContext(ctx, "tcp", u.Host); err == nil {
			return conn.Close()
		}
	}
	return err
}
