package k8s

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// objects decodes the manifest and fails at every field that there is not.
func objects(t *testing.T) map[string]runtime.Object {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	out := map[string]runtime.Object{}
	for i, doc := range strings.Split(Manifest, "\n---\n") {
		o, kind, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Fatalf("object %d: %v", i, err)
		}
		meta, ok := o.(interface{ GetName() string })
		if !ok {
			t.Fatalf("object %d is a %T", i, o)
		}
		out[kind.Kind+" "+meta.GetName()] = o
	}
	return out
}

func TestManifest(t *testing.T) {
	all := objects(t)
	want := []string{
		"ClusterRole contiv-netmaster", "ClusterRole contiv-netplugin", "ClusterRoleBinding contiv-netmaster", "ClusterRoleBinding contiv-netplugin", "ConfigMap contiv-ca", "ConfigMap contiv-config", "DaemonSet contiv-netplugin",
		"Deployment contiv-netmaster", "Role contiv-netmaster", "RoleBinding contiv-netmaster", "ServiceAccount contiv-netmaster", "ServiceAccount contiv-netplugin",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(all))); diff != "" {
		t.Fatal(diff)
	}
	settings := all["ConfigMap contiv-config"].(*corev1.ConfigMap).Data
	for name, spec := range map[string]corev1.PodSpec{
		"netmaster": all["Deployment contiv-netmaster"].(*appsv1.Deployment).Spec.Template.Spec,
		"netplugin": all["DaemonSet contiv-netplugin"].(*appsv1.DaemonSet).Spec.Template.Spec,
	} {
		t.Run(name, func(t *testing.T) {
			if !spec.HostNetwork || !strings.HasPrefix(spec.PriorityClassName, "system-") || len(spec.Tolerations) == 0 {
				t.Error("it must start before there is a network, and stay")
			}
			if _, ok := all["ServiceAccount "+spec.ServiceAccountName]; !ok {
				t.Errorf("service account %s is not there", spec.ServiceAccountName)
			}
			volumes := map[string]bool{}
			for _, v := range spec.Volumes {
				volumes[v.Name] = true
			}
			for _, c := range spec.Containers {
				for _, m := range c.VolumeMounts {
					if !volumes[m.Name] {
						t.Errorf("volume %s is not there", m.Name)
					}
					delete(volumes, m.Name)
				}
				defined := map[string]bool{}
				for _, e := range c.Env {
					for _, ref := range regexp.MustCompile(`\$\((\w+)\)`).FindAllStringSubmatch(e.Value, -1) {
						if !defined[ref[1]] {
							t.Errorf("%s: variable %s is not defined before it", e.Name, ref[1])
						}
					}
					defined[e.Name] = true
					if e.ValueFrom == nil || e.ValueFrom.ConfigMapKeyRef == nil {
						continue
					}
					ref := e.ValueFrom.ConfigMapKeyRef
					if _, ok := settings[ref.Key]; !ok && (ref.Optional == nil || !*ref.Optional) {
						t.Errorf("%s: setting %s is not there", e.Name, ref.Key)
					}
				}
			}
			if len(volumes) > 0 {
				t.Errorf("volumes %v are not used", volumes)
			}
		})
	}
}

// TestStoreIsKept: the directory of netmaster's store is on the node, where the next pod
// finds it.
func TestStoreIsKept(t *testing.T) {
	pod := objects(t)["Deployment contiv-netmaster"].(*appsv1.Deployment).Spec.Template.Spec
	const store = "/var/lib/contiv" // what netmaster's default is below
	for _, m := range pod.Containers[0].VolumeMounts {
		if m.MountPath != store {
			continue
		}
		for _, v := range pod.Volumes {
			if v.Name == m.Name && v.HostPath != nil && v.HostPath.Path == store {
				return
			}
		}
	}
	t.Errorf("%s is not mounted from the node", store)
}

func TestOnly(t *testing.T) {
	if got := fmt.Sprint(strings.Count(Only("ServiceAccount"), "kind: ServiceAccount")); got != "2" {
		t.Errorf("%s service accounts", got)
	}
	if Only("Secret") != "" {
		t.Error("there is a Secret")
	}
}
