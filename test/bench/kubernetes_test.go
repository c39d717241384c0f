//go:build kubernetes

package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// timed runs a plugin in its place, and notes how long attaching a container took in
// microseconds. The clock is the shell's own: no program is started for it.
const timed = `#!/bin/bash
began=${EPOCHREALTIME/./}
%s
rc=$?
[ "$CNI_COMMAND" = ADD ] && echo $((${EPOCHREALTIME/./} - began)) >>/var/log/cni-add
exit $rc
`

// upNodes brings up a cluster of two nodes, the first one's pods on Contiv, those of the
// second on the reference plugins. Both are timed.
func upNodes(b *testing.B) *lab.Lab {
	b.Helper()
	l := labtest.Up(b, lab.Config{Hosts: 2, Kubernetes: true})
	confs := []struct{ plugin, list string }{
		{"/opt/contiv/bin/contivk8s", `{"cniVersion":"1.0.0","name":"contiv-net","plugins":[{"type":"timed"},{"type":"portmap","capabilities":{"portMappings":true}}]}`},
		{"/opt/cni/bin/bridge", `{"cniVersion":"1.0.0","name":"floor","plugins":[{"type":"timed","bridge":"cni0","isGateway":true,` +
			`"ipam":{"type":"host-local","subnet":"10.22.0.0/16"}},{"type":"portmap","capabilities":{"portMappings":true}}]}`},
	}
	for i, h := range l.Hosts() {
		write := func(content, path, mode string) {
			b.Helper()
			temp := path + ".new"
			err := h.Run(b.Context(), lab.Stdio{In: strings.NewReader(content)}, "sh", "-c", "cat >"+temp+" && chmod "+mode+" "+temp+" && mv "+temp+" "+path)
			if err != nil {
				b.Fatal(err)
			}
		}
		write(fmt.Sprintf(timed, confs[i].plugin), "/opt/cni/bin/timed", "755")
		write(confs[i].list, "/etc/cni/net.d/05-timed.conflist", "644")
	}
	for _, h := range l.Hosts() {
		for _, what := range []string{"create", "condition=Ready"} {
			kubectl(b, l, "wait", "--timeout", "5m", "--for="+what, "node/"+h.Name)
		}
	}
	kubectl(b, l, "wait", "--timeout", "5m", "--for=create", "serviceaccount/default")
	return l
}

func kubectl(b *testing.B, l *lab.Lab, args ...string) {
	b.Helper()
	if out, err := l.Kubectl(b.Context(), args...); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// replicas makes a number of pods on a host and waits until all are ready; it returns how
// long that took.
func replicas(ctx context.Context, l *lab.Lab, h *lab.Host, n int) (time.Duration, error) {
	began := time.Now()
	if _, err := l.KubectlInput(ctx, fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  replicas: %d
  selector: {matchLabels: {on: %[1]s}}
  template:
    metadata: {labels: {on: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeName: %[1]s
      containers: [{name: main, image: "%[3]s", command: [sleep, "1000000"]}]
`, h.Name, n, lab.KubeImage), "apply", "-f", "-"); err != nil {
		return 0, err
	}
	_, err := l.Kubectl(ctx, "rollout", "status", "deployment/"+h.Name, "--timeout", "10m")
	return time.Since(began), err
}

// remove removes the pods of a host, and waits for it.
func remove(ctx context.Context, l *lab.Lab, h *lab.Host) error {
	if _, err := l.Kubectl(ctx, "delete", "deployment/"+h.Name); err != nil {
		return err
	}
	_, err := l.Kubectl(ctx, "wait", "--for=delete", "pod", "-l", "on="+h.Name, "--timeout", "10m")
	return err
}

// adds returns how long a host's plugin took, each time since the last call.
func adds(ctx context.Context, h *lab.Host) ([]time.Duration, error) {
	out, err := h.Output(ctx, "sh", "-c", "cat /var/log/cni-add && rm /var/log/cni-add")
	if err != nil {
		return nil, err
	}
	var all []time.Duration
	for _, word := range strings.Fields(out) {
		µs, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		all = append(all, time.Duration(µs)*time.Microsecond)
	}
	return all, nil
}

// BenchmarkKubernetesPodAdd: the plugin's part of a pod's start, as its runtime calls it,
// one pod at a time and on both nodes in turns.
func BenchmarkKubernetesPodAdd(b *testing.B) {
	l := upNodes(b)
	times := map[string][]time.Duration{}
	for b.Loop() {
		for round := range 20 {
			for _, h := range l.Hosts() {
				_, err := replicas(b.Context(), l, h, 1)
				if err == nil {
					err = remove(b.Context(), l, h)
				}
				if err != nil {
					b.Fatal(err)
				}
				took, err := adds(b.Context(), h)
				if err != nil {
					b.Fatal(err)
				}
				if round > 0 { // the first is of cold caches
					times[h.Name] = append(times[h.Name], took...)
				}
			}
		}
	}
	ours, theirs := quantile(times["host1"], 0.5), quantile(times["host2"], 0.5)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(milliseconds(ours), "p50-ms")
	b.ReportMetric(milliseconds(theirs), "p50-floor-ms")
	b.ReportMetric(float64(ours)/float64(theirs), "p50-ratio")
}

// BenchmarkKubernetesHundredPods: from a Deployment to a hundred ready pods on one node.
func BenchmarkKubernetesHundredPods(b *testing.B) {
	l := upNodes(b)
	took, plugin := map[string][]time.Duration{}, map[string][]time.Duration{}
	for b.Loop() {
		for _, h := range l.Hosts() {
			t, err := replicas(b.Context(), l, h, 100)
			if err == nil {
				err = remove(b.Context(), l, h)
			}
			if err != nil {
				b.Fatal(err)
			}
			each, err := adds(b.Context(), h)
			if err != nil {
				b.Fatal(err)
			}
			took[h.Name], plugin[h.Name] = append(took[h.Name], t), append(plugin[h.Name], each...)
		}
	}
	ours, theirs := quantile(took["host1"], 0.5), quantile(took["host2"], 0.5)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours.Seconds(), "s")
	b.ReportMetric(theirs.Seconds(), "floor-s")
	b.ReportMetric(float64(ours)/float64(theirs), "ratio")
	b.ReportMetric(milliseconds(quantile(plugin["host1"], 0.5)), "add-p50-ms")
	b.ReportMetric(milliseconds(quantile(plugin["host2"], 0.5)), "add-p50-floor-ms")
}
