package lab

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/contiv/netplugin/install/image"
	"github.com/contiv/netplugin/test/lab/hostinit"
)

// kubeKeys are the credentials of a lab's cluster, in PEM. The key of the API server
// signs service accounts too.
type kubeKeys struct{ ca, cert, key string }

// newKubeKeys makes an authority and a certificate for the API server.
func newKubeKeys() (k kubeKeys, err error) {
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return k, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return k, err
	}
	valid := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0), BasicConstraintsValid: true,
		}
	}
	ca := valid(1, "contiv-lab")
	ca.IsCA, ca.KeyUsage = true, x509.KeyUsageCertSign
	server := valid(2, "kube-apiserver")
	server.KeyUsage, server.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.IPAddresses = []net.IP{net.IP(ControlIP(1).AsSlice()), net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1), net.IP(ControlIP6(1).AsSlice())}
	server.DNSNames = []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, authority.Public(), authority)
	if err != nil {
		return k, err
	}
	certDER, err := x509.CreateCertificate(rand.Reader, server, ca, key.Public(), authority)
	if err != nil {
		return k, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return k, err
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return kubeKeys{block("CERTIFICATE", caDER), block("CERTIFICATE", certDER), block("EC PRIVATE KEY", keyDER)}, nil
}

// adminToken is the administrator's.
const adminToken = "admin-token"

// kubeTokens says who is who to the API server.
func (l *Lab) kubeTokens() string {
	var b strings.Builder
	b.WriteString(adminToken + ",admin,admin,\"system:masters\"\n")
	b.WriteString("contiv-token,system:serviceaccount:kube-system:contiv-netplugin,contiv,\"system:serviceaccounts\"\n")
	for _, h := range l.hosts {
		fmt.Fprintf(&b, "%s-token,system:node:%[1]s,%[1]s,\"system:nodes\"\n", h.Name)
	}
	return b.String()
}

func kubeconfig(token string) string {
	return `apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "https://` + kubeMaster() + `", certificate-authority: ` + kubeDir + `/ca.crt}}]
users: [{name: me, user: {token: ` + token + `}}]
contexts: [{name: lab, context: {cluster: lab, user: me}}]
current-context: lab
`
}

// kubeletConfig keeps pods to cgroups of the host's own: those of the machine are shared.
func (h *Host) kubeletConfig() string {
	names := ""
	if h.lab.cfg.ClusterDNS {
		names = "clusterDNS: [" + KubeDNS + "]\nclusterDomain: " + KubeDomain + "\n"
	}
	return names + `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: ` + h.lab.cgroup() + "/" + h.Name + `
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
enforceNodeAllocatable: [pods]
nodeStatusUpdateFrequency: 5s
staticPodPath: ` + kubeDir + `/manifests
address: ` + h.ControlIP() + `
`
}

// addKubernetes adds to a host what Kubernetes needs there.
func (h *Host) addKubernetes(c *hostinit.Config, keys kubeKeys) error {
	dir, err := kubeBinaries()
	if err != nil {
		return err
	}
	c.Binds = append(c.Binds, hostinit.Bind{Source: dir, Target: kubeBin, ReadOnly: true})
	if !h.lab.cfg.Bare {
		access, err := json.Marshal(map[string]string{
			"K8S_API_SERVER": "https://" + kubeMaster(), "K8S_CA": kubeDir + "/ca.crt", "K8S_TOKEN": "contiv-token", "SVC_SUBNET": kubeServices + "," + kubeServices6,
		})
		if err != nil {
			return err
		}
		c.Files["/var/contiv/config/contiv.json"] = string(access)
	}
	files := map[string]string{
		"ca.crt": keys.ca, "node.kubeconfig": kubeconfig(h.Name + "-token"), "kubelet.yaml": h.kubeletConfig(), "containerd.toml": h.containerdConfig(),
		"manifests/.none": "", // the kubelet watches what is there when it starts
	}
	if h.Number == 1 {
		files["apiserver.crt"], files["apiserver.key"], files["tokens.csv"] = keys.cert, keys.key, h.lab.kubeTokens()
		files["admin.kubeconfig"] = kubeconfig(adminToken)
	}
	for name, content := range files {
		c.Files[filepath.Join(kubeDir, name)] = content
	}
	return h.makeCgroups()
}

// makeCgroups makes the cgroups that kubelet puts those of pods into.
func (h *Host) makeCgroups() error {
	hierarchies, err := filepath.Glob("/sys/fs/cgroup/*")
	if err != nil {
		return err
	}
	for _, root := range hierarchies {
		if info, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil || info.IsDir() {
			continue
		}
		for _, dir := range []string{filepath.Join(root, h.lab.cgroup()), filepath.Join(root, h.lab.cgroup(), h.Name)} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("make cgroup: %w", err)
			}
			for _, name := range []string{"cpuset.cpus", "cpuset.mems"} { // not inherited
				b, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name))
				if err != nil {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, name), bytes.TrimSpace(b), 0o644); err != nil {
					return fmt.Errorf("set %s of cgroup %s: %w", name, dir, err)
				}
			}
		}
	}
	return nil
}

// writeImages writes an archive of images with nothing but busybox.
func (h *Host) writeImages(path string) (err error) {
	root := &image.Tree{}
	for _, dir := range []string{"dev", "proc", "root", "sys", "tmp"} {
		root.Dir(dir, 0o755)
	}
	root.Text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n", 0o644)
	if err := root.Program("/bin/busybox"); err != nil {
		return err
	}
	for _, name := range applets() {
		root.Link("bin/"+name, "busybox")
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	env := []string{"PATH=/bin"}
	return errors.Join(image.WriteArchive(
		f, root,
		image.Image{Name: KubeImage, Cmd: []string{"/bin/sh"}, Env: env},
		image.Image{Name: pauseImage, Cmd: []string{"/bin/sleep", "1000000000"}, Env: env},
	), f.Close())
}

// applets are the names under which busybox is found in the images.
func applets() []string {
	return strings.Fields("sh sleep cat echo ls ip ping nc wget httpd nslookup hostname env true false seq grep awk sed head tr mkdir touch rm ps kill test")
}
