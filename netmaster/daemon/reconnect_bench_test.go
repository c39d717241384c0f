package daemon_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/pki/pkitest"
	"github.com/contiv/netplugin/utils/tlsport"
)

// BenchmarkReconnect: a thousand agents, each with a connection of its own to the leader, lose
// it; how long until the next one has answered all of them, with TLS and without.
func BenchmarkReconnect(b *testing.B) {
	const agents = 1000
	ca := pkitest.Authority(b)
	took := map[tlsport.Mode]time.Duration{}
	for b.Loop() {
		for _, mode := range []tlsport.Mode{tlsport.Off, tlsport.Require} {
			store := memory.New()
			one := startSecured(b, ca, mode, store.Connect())
			var clients []*http.Client
			for i := range agents {
				d := &tlsport.Dialer{Mode: mode, TLS: pki.ClientConfig(pkitest.Credentials(b, ca, pki.UnitAgent, fmt.Sprintf("host%d", i)), pki.UnitMaster)}
				tr := &http.Transport{DialContext: d.DialContext}
				b.Cleanup(tr.CloseIdleConnections)
				clients = append(clients, &http.Client{Transport: tr})
			}
			all := func(addr string) {
				var wg sync.WaitGroup
				for _, c := range clients {
					wg.Go(func() {
						for {
							if resp, err := c.Get("http://" + addr + "/api/v1/x/"); err == nil {
								resp.Body.Close()
								if resp.StatusCode == http.StatusOK {
									return
								}
							}
							time.Sleep(20 * time.Millisecond)
						}
					})
				}
				wg.Wait()
			}
			all(one.addr)
			two := startSecured(b, ca, mode, store.Connect())
			began := time.Now()
			one.stop()
			all(two.addr)
			took[mode] += time.Since(began)
			two.stop()
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took[tlsport.Require].Seconds()/float64(b.N), "s")
	b.ReportMetric(float64(took[tlsport.Require])/float64(took[tlsport.Off]), "ratio")
}
