package export

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// collectorConfig has the collector print what it gets by OTLP at an address.
const collectorConfig = `receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {debug: {verbosity: detailed}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {logs: {receivers: [otlp], exporters: [debug]}}
`

// startCollector runs the OpenTelemetry collector until the test ends, and returns its address
// and the file that it prints to.
func startCollector(t *testing.T) (address, printed string) {
	t.Helper()
	out, err := exec.Command("../../../scripts/otelcol", "--path").Output()
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSpace(string(out))
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("there is no OpenTelemetry collector, build it with scripts/otelcol: %v", err)
	}
	dir := t.TempDir()
	config, address := filepath.Join(dir, "config.yaml"), netxtest.FreeAddress(t)
	if err := os.WriteFile(config, fmt.Appendf(nil, collectorConfig, address), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c := exec.Command(path, "--config", "file:"+config)
	c.Stdout, c.Stderr, c.SysProcAttr = log, log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // its status is that of the signal
		if text, err := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("the collector printed: %s %v", text, err)
		}
	})
	eventually.Succeeds(t, "the collector listens", func() error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	return address, log.Name()
}

// TestCollector: the collector of OpenTelemetry takes the records, and has all that is in them.
func TestCollector(t *testing.T) {
	address, printed := startCollector(t)
	if e := run(t, "otlp+http://"+address+"/v1/logs", 20, records(20)); e.sent.Load() != 20 {
		t.Errorf("%d sent, %d lost", e.sent.Load(), e.lost.Load())
	}
	var text string
	eventually.Succeeds(t, "the collector has printed all records", func() error {
		out, err := os.ReadFile(printed)
		if text = string(out); err == nil && strings.Count(text, "Body: ") < 20 {
			err = fmt.Errorf("%d are", strings.Count(text, "Body: "))
		}
		return err
	})
	for want, n := range map[string]int{
		"host.name: Str(host1)": 1, "Body: Str(allowed tcp shop-app to shop-web: guard/7)": 10, "Body: Str(denied udp shop-app to shop-web: guard/7)": 10,
		"SeverityText: WARN": 10, "source.address: Str(2001:db8::2)": 10, "contiv.bytes: Int(900)": 10, "contiv.service: Str(store)": 10, "contiv.rule: Str(guard/7)": 20,
	} {
		if have := strings.Count(text, want); have != n {
			t.Errorf("%d times %q, want %d", have, want, n)
		}
	}
}
