package nodeproxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

func TestHealth(t *testing.T) {
	n, err := strconv.ParseUint(netxtest.FreePort(t), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(n)
	log := logrus.New()
	log.SetOutput(io.Discard)
	h := newHealth(log)
	defer h.close()
	for _, c := range []struct {
		healthy, status int
		body            string
	}{
		{0, 503, `{"service":{"namespace":"shop","name":"web"},"localEndpoints":0,"serviceProxyHealthy":true}`},
		{2, 200, `{"service":{"namespace":"shop","name":"web"},"localEndpoints":2,"serviceProxyHealthy":true}`},
	} {
		if err := h.set([]Service{{ID: "shop/web", HealthPort: port, Healthy: c.healthy}, {ID: "shop/other"}}); err != nil {
			t.Fatal(err)
		}
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != c.status || string(body) != c.body+"\n" {
			t.Errorf("with %d providers: %d, %s, %v", c.healthy, answer.StatusCode, body, err)
		}
	}
	if err := h.set(nil); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)) // it is free again
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := h.set([]Service{{ID: "shop/web", HealthPort: port}}); !errs.Is(err, errs.Conflict) {
		t.Errorf("a port that somebody has: %v", err)
	}
}
