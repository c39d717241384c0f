package etcd

import (
	"context"
	"errors"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/contiv/netplugin/objdb"
)

// memberWithin is how long a member may take to accept a connection, and to answer.
const memberWithin = time.Second

// Members implements objdb.Membership.
func (s *Store) Members(ctx context.Context) ([]objdb.Member, error) {
	ctx, over := s.life.Bound(ctx)
	defer over()
	list, err := s.c.MemberList(ctx)
	if err != nil {
		return nil, s.wrap(err, "list the members")
	}
	alarms := s.alarms(ctx)
	members := make([]objdb.Member, len(list.Members))
	applied := make([]uint64, len(list.Members))
	var all sync.WaitGroup
	for i, m := range list.Members {
		members[i].Name, members[i].Alarms = m.Name, alarms[m.ID]
		all.Go(func() {
			if err := accepts(ctx, m.ClientURLs); err != nil {
				members[i].Err = err.Error()
				return
			}
			status, err := s.status(ctx, m.ClientURLs)
			switch {
			case errors.Is(err, context.DeadlineExceeded):
				members[i].Err = "it accepts connections, but does not answer"
			case err == nil && status.Header.MemberId == m.ID: // a server in this process answers for itself only
				members[i].Leads, applied[i] = status.Leader == m.ID, status.RaftAppliedIndex
			}
		})
	}
	all.Wait()
	newest := slices.Max(append(applied, 0))
	for i, at := range applied {
		if at > 0 {
			members[i].Behind = newest - at
		}
	}
	return members, nil
}

// alarms returns those that are on by member; none if they cannot be asked for.
func (s *Store) alarms(ctx context.Context) map[uint64][]string {
	on := map[uint64][]string{}
	answer, err := s.c.AlarmList(ctx)
	if err != nil {
		return on // one that may not be asked, or an old server
	}
	for _, a := range answer.Alarms {
		on[a.MemberID] = append(on[a.MemberID], a.Alarm.String())
	}
	return on
}

// status asks the first of a member's addresses that answers.
func (s *Store) status(ctx context.Context, urls []string) (status *clientv3.StatusResponse, err error) {
	ctx, cancel := context.WithTimeout(ctx, memberWithin)
	defer cancel()
	err = errors.New("it has no address")
	for _, url := range urls {
		if status, err = s.c.Status(ctx, url); err == nil {
			return status, nil
		}
	}
	if ctx.Err() != nil {
		return nil, context.DeadlineExceeded
	}
	return nil, err
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
