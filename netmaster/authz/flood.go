package authz

import (
	"fmt"
	"net/http"

	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/pace"
)

// How many changes one identity may make: more than people and scripts do, and so few that one
// tenant, or one host that is stolen, leaves room for the others.
const (
	userWrites, userBurst = 200, 2000 // per second, and at once
	hostWrites, hostBurst = 2000, 10000
)

// flood bounds how fast users and hosts change things. Admins and netmasters are not bounded.
type flood struct{ users, hosts *pace.Limiter }

func newFlood() *flood {
	return &flood{users: pace.New(userWrites, userBurst), hosts: pace.New(hostWrites, hostBurst)}
}

// refusal says why a request has to wait, "" if it has not.
func (l *flood) refusal(id identity.Identity, method string) string {
	if method == http.MethodGet || method == http.MethodHead || id.IsAdmin() {
		return ""
	}
	limiter, most := l.users, userWrites
	switch id.Kind {
	case identity.User:
	case identity.Host:
		limiter, most = l.hosts, hostWrites
	default:
		return ""
	}
	if limiter.Allow(id.String()) {
		return ""
	}
	return fmt.Sprintf("%s makes too many changes: at most %d per second are allowed, try again", id, most)
}
