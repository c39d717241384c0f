package nodeproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/errs"
)

// health tells load balancers which nodes have providers of their own, so that they send
// only there what is not to be sent on.
type health struct {
	log     logrus.FieldLogger
	servers map[uint16]*healthServer // by port
}

// healthServer answers for one Service.
type healthServer struct {
	server *http.Server
	done   chan struct{}

	mu      sync.Mutex
	service Service
}

func newHealth(log logrus.FieldLogger) *health {
	return &health{log: log, servers: map[uint16]*healthServer{}}
}

// set makes the servers those that services ask for.
func (h *health) set(services []Service) error {
	want := map[uint16]Service{}
	for _, s := range services {
		if _, taken := want[s.HealthPort]; s.HealthPort != 0 && !taken {
			want[s.HealthPort] = s
		}
	}
	for port, s := range h.servers {
		if _, ok := want[port]; !ok {
			s.close()
			delete(h.servers, port)
		}
	}
	var failed []error
	for port, service := range want {
		s := h.servers[port]
		if s == nil {
			l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
			if err != nil {
				failed = append(failed, errs.New(errs.Conflict, "answer health checks of load balancers for Service %s at port %d: %w", service.ID, port, err))
				continue
			}
			s = &healthServer{done: make(chan struct{})}
			s.server = &http.Server{
				Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
				IdleTimeout: 30 * time.Second, MaxHeaderBytes: 8 << 10,
			}
			h.servers[port] = s
			go func() {
				defer close(s.done)
				if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
					h.log.WithError(err).WithField("port", port).Error("the health check server for load balancers has stopped")
				}
			}()
		}
		s.mu.Lock()
		s.service = service
		s.mu.Unlock()
	}
	return errors.Join(failed...)
}

func (h *health) close() {
	for port, s := range h.servers {
		s.close()
		delete(h.servers, port)
	}
}

func (s *healthServer) close() {
	_ = s.server.Close() // it has nothing to finish
	<-s.done
}

// ServeHTTP says 200 when there are providers, 503 otherwise, and how many.
func (s *healthServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	service := s.service
	s.mu.Unlock()
	namespace, name, _ := strings.Cut(service.ID, "/")
	var body struct {
		Service struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
		LocalEndpoints      int  `json:"localEndpoints"`
		ServiceProxyHealthy bool `json:"serviceProxyHealthy"`
	}
	body.Service.Namespace, body.Service.Name, body.LocalEndpoints, body.ServiceProxyHealthy = namespace, name, service.Healthy, true
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", fmt.Sprint(service.Healthy))
	if service.Healthy == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(body) // to somebody who may have gone
}
