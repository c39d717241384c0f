package nameserver

import "sync"

// quota bounds how much is under way, in all and for each tenant, so that no tenant can
// take the others' share.
type quota struct {
	all, each int

	mu   sync.Mutex
	used map[string]int
	sum  int
}

func newQuota(all, each int) *quota { return &quota{all: all, each: each, used: map[string]int{}} }

// take takes one for a tenant, if there is one; release gives it back.
func (q *quota) take(tenant string) (release func(), ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sum >= q.all || q.used[tenant] >= q.each {
		return nil, false
	}
	q.sum++
	q.used[tenant]++
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.sum--
		if q.used[tenant]--; q.used[tenant] == 0 {
			delete(q.used, tenant)
		}
	}), true
}
