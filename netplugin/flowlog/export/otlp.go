package export

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/contiv/netplugin/state/flowapi"
)

// otlp sends records as OpenTelemetry logs (OTLP/HTTP 1.x, binary).
type otlp struct {
	url    string
	host   string
	client *http.Client
}

func newOTLP(url, host string) *otlp {
	// A collector has nothing to redirect to.
	return &otlp{url: url, host: host, client: &http.Client{Transport: &http.Transport{Proxy: nil, MaxIdleConns: 1}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}}
}

func (s *otlp) close() { s.client.CloseIdleConnections() }

func (s *otlp) send(ctx context.Context, events []*flowapi.Event) error {
	// LogsData is encoded like ExportLogsServiceRequest.
	body, err := proto.Marshal(&logs.LogsData{ResourceLogs: []*logs.ResourceLogs{{
		Resource:  &resource.Resource{Attributes: attributes("service.name", "netplugin", "host.name", s.host)},
		ScopeLogs: []*logs.ScopeLogs{{Scope: &common.InstrumentationScope{Name: "contiv.flows"}, LogRecords: logRecords(recordsOf(events))}},
	}}})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s, expected 200", resp.Status)
	}
	return nil
}

func logRecords(records []*flowapi.Record) []*logs.LogRecord {
	out := make([]*logs.LogRecord, 0, len(records))
	for _, r := range records {
		severity, text := logs.SeverityNumber_SEVERITY_NUMBER_INFO, "INFO"
		if r.Verdict != flowapi.Allowed {
			severity, text = logs.SeverityNumber_SEVERITY_NUMBER_WARN, "WARN"
		}
		a := attributes(
			"contiv.id", r.ID, "contiv.tenant", r.Tenant, "contiv.verdict", string(r.Verdict), "contiv.rule", deciders(r), "contiv.hosts", strings.Join(r.Hosts, ","),
			"network.transport", r.Proto, "source.address", addressOf(r.Src), "destination.address", addressOf(r.Dst),
			"contiv.source.name", r.Src.Name, "contiv.source.group", r.Src.Group, "contiv.destination.name", r.Dst.Name, "contiv.destination.group", r.Dst.Group,
		)
		if r.Service != nil {
			a = append(a, attributes("contiv.service", r.Service.Name)...)
		}
		for name, n := range map[string]uint64{
			"source.port": uint64(r.Src.Port), "destination.port": uint64(r.Dst.Port), "contiv.packets": r.Packets, "contiv.bytes": r.Bytes, "contiv.count": uint64(r.Count),
		} {
			if n != 0 {
				a = append(a, &common.KeyValue{Key: name, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: int64(n)}}})
			}
		}
		out = append(out, &logs.LogRecord{
			TimeUnixNano: uint64(r.Start.UnixNano()), ObservedTimeUnixNano: uint64(r.End.UnixNano()), SeverityNumber: severity, SeverityText: text,
			Body: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: strings.ToValidUTF8(fmt.Sprintf("%s %s %s to %s: %s", r.Verdict, r.Proto, nameOf(r.Src), nameOf(r.Dst), deciders(r)), "?")}}, Attributes: a,
		})
	}
	return out
}

func nameOf(e flowapi.End) string {
	if e.Name != "" {
		return e.Name
	}
	return addressOf(e)
}

func addressOf(e flowapi.End) string {
	if !e.Address.IsValid() {
		return ""
	}
	return e.Address.String()
}

// attributes makes pairs of names and texts; those without text are left out.
func attributes(pairs ...string) (out []*common.KeyValue) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, &common.KeyValue{Key: pairs[i], Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: strings.ToValidUTF8(pairs[i+1], "?")}}})
		}
	}
	return out
}
