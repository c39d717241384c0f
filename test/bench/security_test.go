package bench

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/tlsport"
)

// securedAPI is api over TLS: as the host's agent, or with a token.
func securedAPI(h *lab.Host, creds *pki.Credentials, token string) api {
	tr := &http.Transport{MaxIdleConnsPerHost: 64, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := h.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return tls.Client(raw, pki.ClientConfig(creds, pki.UnitMaster)), nil
	}}
	return api{&http.Client{Transport: withToken{tr, token}}}
}

type withToken struct {
	http.RoundTripper
	token string
}

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("X-Auth-Token", t.token)
	}
	return t.RoundTripper.RoundTrip(r)
}

// logIn returns a token of admin, who has the password that netmaster has made.
func logIn(b *testing.B, h *lab.Host, a api) string {
	b.Helper()
	password, err := os.ReadFile(h.File(lab.MasterTLSDir + "/initial-admin-password"))
	if err != nil {
		b.Fatal(err)
	}
	body := fmt.Sprintf(`{"username":"admin","password":%q}`, strings.TrimSpace(string(password)))
	resp, err := a.http.Post("http://127.0.0.1:9999/api/v1/auth_proxy/login/", "application/json", strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Token string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Token == "" {
		b.Fatalf("log in: %s, %v", resp.Status, err)
	}
	return answer.Token
}

// BenchmarkSecured: what TLS, certificates and roles cost netmaster, against the same without
// them: eight agents' connections create endpoints, eight of an administrator create networks.
func BenchmarkSecured(b *testing.B) {
	const clients, n = 8, 1000
	plainHost := labtest.Up(b, lab.Config{Hosts: 1}).Hosts()[0]
	h := labtest.Up(b, lab.Config{Hosts: 1, TLS: tlsport.Require}).Hosts()[0]
	creds, err := h.AgentCredentials()
	if err != nil {
		b.Fatal(err)
	}
	admin := pki.NewCredentials()
	if err := admin.SetRoots(pki.EncodeCertificates(creds.Roots()...)); err != nil {
		b.Fatal(err)
	}
	token := logIn(b, h, securedAPI(h, admin, ""))
	kinds := []struct{ agent, admin api }{{apiOf(plainHost), apiOf(plainHost)}, {securedAPI(h, creds, ""), securedAPI(h, admin, token)}}
	network := func(ctx context.Context, a api, name, subnet string) error {
		return a.post(ctx, "/api/v1/"+contivmodel.NetworkKind().Collection+"/default:"+name+"/", &contivmodel.Network{
			TenantName: "default", NetworkName: name, Encap: "vxlan", Subnet: subnet,
		})
	}
	for _, k := range kinds {
		if err := network(b.Context(), k.admin, "bench", "10.0.0.0/8"); err != nil {
			b.Fatal(err)
		}
	}
	rate := func(do func(ctx context.Context, i int) error) float64 {
		perSecond, err := each(b.Context(), n, clients, do)
		if err != nil {
			b.Fatal(err)
		}
		return perSecond
	}
	var endpoints, objects [2][]float64
	round := 0
	for b.Loop() {
		for range 5 { // in turns, so that a change of the machine's pace meets both
			for i, k := range kinds {
				endpoints[i] = append(endpoints[i], rate(func(ctx context.Context, j int) error {
					return k.agent.createEndpoint(ctx, "bench", "host1", fmt.Sprintf("c%d", round*n+j))
				}))
				objects[i] = append(objects[i], rate(func(ctx context.Context, j int) error {
					id := round*n + j
					return network(ctx, k.admin, fmt.Sprintf("n%d", id), fmt.Sprintf("20.%d.%d.0/24", id>>8&255, id&255))
				}))
			}
			round++
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(endpoints[1]), "endpoints/s")
	b.ReportMetric(median(endpoints[1])/median(endpoints[0]), "endpoints-ratio")
	b.ReportMetric(median(objects[1]), "objects/s")
	b.ReportMetric(median(objects[1])/median(objects[0]), "objects-ratio")
}

// BenchmarkSecuredPodAdd: what TLS and certificates cost a pod that starts, against the same
// without them, from the exec of the plugin to its end.
func BenchmarkSecuredPodAdd(b *testing.B) {
	hosts := []*lab.Host{upNetwork(b, lab.Config{Hosts: 1}).Hosts()[0], upNetwork(b, lab.Config{Hosts: 1, TLS: tlsport.Require}).Hosts()[0]}
	var times [2][]time.Duration
	for b.Loop() {
		for n := range 200 {
			for i, h := range hosts { // in turns, so that a change of the machine's pace meets both
				took, err := contiv("bench").cycle(b.Context(), h, fmt.Sprintf("c%d", n))
				if err != nil {
					b.Fatal(err)
				}
				times[i] = append(times[i], took)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(milliseconds(quantile(times[1], 0.5)), "p50-ms")
	b.ReportMetric(float64(quantile(times[1], 0.5))/float64(quantile(times[0], 0.5)), "p50-ratio")
	b.ReportMetric(float64(quantile(times[1], 0.9))/float64(quantile(times[0], 0.9)), "p90-ratio")
}
