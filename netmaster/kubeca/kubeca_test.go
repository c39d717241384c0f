package kubeca_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/contiv/netplugin/netmaster/kubeca"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/pki/pkitest"
)

// authority returns the PEM of a new one.
func authority(t *testing.T) []byte {
	t.Helper()
	return pkitest.Roots(pkitest.Authority(t))
}

// TestPublish: the ConfigMap has what counts, now and after a rotation; what else is in it stays,
// and one that does not exist yet is waited for.
func TestPublish(t *testing.T) {
	first, second := authority(t), authority(t)
	creds := pki.NewCredentials()
	if err := creds.SetRoots(first); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	maps := client.CoreV1().ConfigMaps("kube-system")
	log := logrus.New()
	log.SetOutput(t.Output())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		kubeca.Publisher{Client: client.CoreV1(), Namespace: "kube-system", Name: "contiv-ca", Credentials: creds, Log: log}.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-done })
	eventually.True(t, "netmaster has looked", func() bool { return len(client.Actions()) > 0 })
	empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "contiv-ca"}, Data: map[string]string{"other": "stays"}}
	if _, err := maps.Create(ctx, empty, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	has := func(want []byte) func() bool {
		return func() bool {
			m, err := maps.Get(ctx, "contiv-ca", metav1.GetOptions{})
			return err == nil && m.Data[kubeca.File] == string(want) && m.Data["other"] == "stays"
		}
	}
	eventually.True(t, "the authority", has(first))
	both := append(second, first...)
	if err := creds.SetRoots(both); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "both authorities of a rotation", has(both))
}

func TestParseName(t *testing.T) {
	if namespace, name, err := kubeca.ParseName("kube-system/contiv-ca"); namespace != "kube-system" || name != "contiv-ca" || err != nil {
		t.Error(namespace, name, err)
	}
	for _, text := range []string{"", "contiv-ca", "/contiv-ca", "kube-system/", "a/b/c"} {
		if _, _, err := kubeca.ParseName(text); err == nil || !strings.Contains(err.Error(), "namespace/name") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
