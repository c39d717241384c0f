package etcd

import clientv3 "go.etcd.io/etcd/client/v3"

// SetPageSize sets how many keys one request of List asks for.
func SetPageSize(s *Store, n int64) { s.page = n }

// Raw is the library's client.
func (s *Store) Raw() *clientv3.Client { return s.c }
