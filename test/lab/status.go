package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/contiv/netplugin/test/lab/hostinit"
)

// HostStatus is a host at a glance.
type HostStatus struct {
	Name      string         `json:"name"`
	Running   bool           `json:"running"`
	PID       int            `json:"pid,omitempty"` // of the host's init, on this machine
	ControlIP string         `json:"controlIP"`
	VTEPIP    string         `json:"vtepIP"`
	Daemons   []DaemonStatus `json:"daemons"`
}

// DaemonStatus adds to what the init knows of a daemon what the daemon says itself.
type DaemonStatus struct {
	hostinit.Status
	// State is "ready", "running" for daemons that are not asked, "not ready: …", or
	// how the daemon ended.
	State string `json:"state"`
}

// askPatience bounds how long a daemon is given to say how it is.
const askPatience = 2 * time.Second

// Status asks every host how its daemons are.
func (l *Lab) Status(ctx context.Context) ([]HostStatus, error) {
	var all []HostStatus
	for _, h := range l.hosts {
		s := HostStatus{Name: h.Name, Running: h.pid != 0, PID: h.pid, ControlIP: h.ControlIP(), VTEPIP: h.VTEPIP()}
		if s.Running {
			client, err := h.client()
			if err != nil {
				return nil, err
			}
			daemons, err := client.Daemons(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", h.Name, err)
			}
			for _, d := range daemons {
				s.Daemons = append(s.Daemons, DaemonStatus{Status: d, State: h.state(ctx, d)})
			}
		}
		all = append(all, s)
	}
	return all, nil
}

func (h *Host) state(ctx context.Context, d hostinit.Status) string {
	switch {
	case !d.Running:
		return "ended: " + d.Exit
	case d.Name == vswitchd:
		return "running"
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	if err := h.probe(ctx, d.Name); err != nil {
		return "not ready: " + err.Error()
	}
	return "ready"
}
