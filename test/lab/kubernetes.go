package lab

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// Daemons of Kubernetes. The control plane, with an etcd of its own, is on host1; every
// host is a node.
const (
	kubeEtcd       = "kube-etcd"
	kubeAPI        = "kube-apiserver"
	kubeController = "kube-controller-manager"
	kubeScheduler  = "kube-scheduler"
	containerd     = "containerd"
	kubelet        = "kubelet"
)

// KubeVersion is what scripts/kubernetes builds.
const KubeVersion = "1.36.3"

// KubeImage is the image of pods: busybox only.
const KubeImage = "contiv.lab/busybox:1"

const pauseImage = "contiv.lab/pause:1"

// kubeServices are where the cluster takes addresses of Services from, those of IPv4
// first.
const kubeServices, kubeServices6 = "10.96.0.0/16", "fd00:10:96::/112"

// KubeDNS is the address of the Service that Config.ClusterDNS has pods ask, and
// KubeDomain the domain of names in the cluster.
const KubeDNS, KubeDomain = "10.96.0.10", "cluster.local"

// kubeDir is where a host has its files of Kubernetes, and where the machine's binaries
// are seen.
const (
	kubeDir = "/etc/kubernetes"
	kubeBin = "/opt/kubernetes/bin"
)

// kubeBinaries is where scripts/kubernetes puts what it builds.
func kubeBinaries() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", errs.New(errs.NotFound, "where Kubernetes was built: %w", err)
	}
	return filepath.Join(cache, "contiv", "kubernetes-"+KubeVersion), nil
}

func findKubernetes() error {
	dir, err := kubeBinaries()
	if err != nil {
		return err
	}
	for _, name := range []string{kubeAPI, kubeController, kubeScheduler, kubelet, "kubectl"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return errs.New(errs.NotFound, "program %s is missing: run make kubernetes", filepath.Join(dir, name))
		}
	}
	for _, name := range []string{"etcd", "containerd", "ctr", "runc", "busybox"} {
		if !inHostPath(name) {
			return errs.New(errs.NotFound, "program %s is missing: run scripts/deps", name)
		}
	}
	return nil
}

// kubeMaster is the address of the API server.
func kubeMaster() string { return netip.AddrPortFrom(ControlIP(1), 6443).String() }

// controlPlane lists the daemons of the control plane.
func controlPlane() []string { return []string{kubeEtcd, kubeAPI, kubeController, kubeScheduler} }

// kubeArgs is the command line of a daemon of Kubernetes; nil for others.
func (h *Host) kubeArgs(daemon string) []string {
	file := func(name string) string { return filepath.Join(kubeDir, name) }
	config := func(user string) []string {
		return []string{"--kubeconfig", file(user + ".kubeconfig"), "--bind-address", "127.0.0.1", "--leader-elect=false"}
	}
	program := filepath.Join(kubeBin, daemon)
	switch daemon {
	case kubeEtcd:
		const client, peer = "http://127.0.0.1:2479", "http://127.0.0.1:2480"
		return []string{
			"etcd", "--name", "kube", "--data-dir", "/var/lib/etcd/kube", "--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "kube=" + peer,
		}
	case kubeAPI:
		return []string{
			program, "--etcd-servers", "http://127.0.0.1:2479", "--bind-address", "0.0.0.0", "--advertise-address", h.ControlIP(), "--secure-port", "6443",
			"--tls-cert-file", file("apiserver.crt"), "--tls-private-key-file", file("apiserver.key"), "--service-cluster-ip-range", kubeServices + "," + kubeServices6,
			"--token-auth-file", file("tokens.csv"), "--authorization-mode", "Node,RBAC", "--allow-privileged=true",
			"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", file("apiserver.crt"),
			"--service-account-signing-key-file", file("apiserver.key"), "--kubelet-preferred-address-types", "InternalIP",
		}
	case kubeController:
		return append([]string{
			program, "--service-account-private-key-file", file("apiserver.key"), "--root-ca-file", file("ca.crt"),
			"--allocate-node-cidrs=false",
		}, config("admin")...)
	case kubeScheduler:
		return append([]string{program}, config("admin")...)
	case containerd:
		return []string{h.containerdProgram(), "--config", file("containerd.toml")}
	case kubelet:
		// It would set these sysctls on the machine: it sees files that have the values already.
		const script = `set -e
mkdir -p /run/sysctls
while read -r path value; do
	[ "$(cat /proc/sys/$path)" = "$value" ] && continue
	file=/run/sysctls/$(echo "$path" | tr / _)
	echo "$value" >"$file"
	mount --bind "$file" "/proc/sys/$path"
done <<END
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
END
exec "$@"`
		return []string{
			"sh", "-c", script, kubelet, program, "--config", file("kubelet.yaml"), "--kubeconfig", file("node.kubeconfig"),
			"--node-ip", h.ControlIP() + "," + ControlIP6(h.Number).String(), "--hostname-override", h.Name,
		}
	}
	return nil
}

// probeKubernetes reports whether a daemon of Kubernetes is ready.
func (h *Host) probeKubernetes(ctx context.Context, daemon string) error {
	switch daemon {
	case kubeEtcd:
		return h.ask(ctx, "http://127.0.0.1:2479/health")
	case kubeAPI:
		return h.askTLS(ctx, "https://127.0.0.1:6443/readyz")
	case kubeController:
		return h.askTLS(ctx, "https://127.0.0.1:10257/healthz")
	case kubeScheduler:
		return h.askTLS(ctx, "https://127.0.0.1:10259/healthz")
	case containerd:
		return h.dial(ctx, "/run/containerd/containerd.sock")
	}
	return h.ask(ctx, "http://127.0.0.1:10248/healthz") // kubelet
}

// askTLS is ask for daemons with self-signed certificates.
func (h *Host) askTLS(ctx context.Context, url string) error {
	client := &http.Client{Transport: &http.Transport{
		DialContext: h.Dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	return askWith(ctx, client, url)
}

// importKubeImages loads the images of pods into the host's containerd.
func (h *Host) importKubeImages(ctx context.Context) error {
	have, err := h.Output(ctx, "ctr", "-n", "k8s.io", "images", "ls", "-q")
	if err != nil {
		return err
	}
	if strings.Contains(have, KubeImage) && strings.Contains(have, pauseImage) {
		return nil
	}
	const archive = "/var/lib/containerd/contiv-lab.tar"
	if err := h.writeImages(h.file(archive)); err != nil {
		return fmt.Errorf("make images: %w", err)
	}
	_, err = h.Output(ctx, "ctr", "-n", "k8s.io", "images", "import", archive)
	return err
}

// markControlPlane gives host1 the label that kubeadm gives nodes with a control plane,
// but not its taint: it is a node like the others.
func (l *Lab) markControlPlane(ctx context.Context) error {
	node := "node/" + l.hosts[0].Name
	if _, err := l.Kubectl(ctx, "wait", "--for=create", "--timeout=5m", node); err != nil {
		return err
	}
	_, err := l.Kubectl(ctx, "label", node, "node-role.kubernetes.io/control-plane=")
	return err
}

// KubeAdmin is where the API server is, and the token of the cluster's administrator, for
// clients that connect by way of a host (Host.Dial).
func (l *Lab) KubeAdmin() (server, token string) { return "https://" + kubeMaster(), adminToken }

// awaitNodes waits until every host is a node, and a ready one if the cluster has a network.
// A kubelet serves before it has registered its node.
func (l *Lab) awaitNodes(ctx context.Context) error {
	for _, h := range l.hosts {
		if _, err := l.Kubectl(ctx, "wait", "--for=create", "--timeout", l.cfg.Timeout.String(), "node/"+h.Name); err != nil {
			return fmt.Errorf("wait for node %s: %w", h.Name, err)
		}
		if l.cfg.Bare {
			continue
		}
		if _, err := l.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout", l.cfg.Timeout.String(), "node/"+h.Name); err != nil {
			return fmt.Errorf("wait until node %s is ready: %w", h.Name, err)
		}
	}
	return nil
}

// Kubectl runs kubectl on host1 as the cluster's administrator and returns what it
// prints.
func (l *Lab) Kubectl(ctx context.Context, args ...string) (string, error) {
	return l.KubectlInput(ctx, "", args...)
}

// KubectlInput is Kubectl with something on standard input.
func (l *Lab) KubectlInput(ctx context.Context, input string, args ...string) (string, error) {
	var out, stderr strings.Builder
	err := l.hosts[0].Run(ctx, Stdio{In: strings.NewReader(input), Out: &out, Err: &stderr}, append([]string{
		filepath.Join(kubeBin, "kubectl"), "--cache-dir", "/run/kubectl", "--kubeconfig", filepath.Join(kubeDir, "admin.kubeconfig"),
	}, args...)...)
	if err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
