package etcd

// SetPageSize sets how many keys one request of List asks for.
func SetPageSize(s *Store, n int64) { s.page = n }
