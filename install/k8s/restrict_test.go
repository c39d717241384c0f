package k8s

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/contiv/netplugin/install/image"
)

// pods are the templates of a file, by the name of their owner.
func pods(t *testing.T, file string) map[string]corev1.PodSpec {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	known := runtime.NewScheme()
	if err := appsv1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	all := map[string]corev1.PodSpec{}
	for _, doc := range strings.Split(string(b), "\n---\n") {
		if !strings.Contains(doc, "\napiVersion: apps/v1\n") && !strings.HasPrefix(doc, "apiVersion: apps/v1\n") {
			continue
		}
		o, _, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch o := o.(type) {
		case *appsv1.Deployment:
			all[o.Name] = o.Spec.Template.Spec
		case *appsv1.DaemonSet:
			all[o.Name] = o.Spec.Template.Spec
		}
	}
	return all
}

// restricted are the pods of Contiv.
func restricted(t *testing.T) map[string]corev1.PodSpec {
	t.Helper()
	all := map[string]corev1.PodSpec{}
	for _, file := range []string{"contiv.yaml", "ovs.yaml", "cleanup.yaml"} {
		for name, spec := range pods(t, file) {
			all[name] = spec
		}
	}
	if len(all) != 4 {
		t.Fatalf("%d kinds of pods", len(all))
	}
	return all
}

// TestPodsAreRestricted: no container is privileged, or has what is not asked for.
func TestPodsAreRestricted(t *testing.T) {
	for name, pod := range restricted(t) {
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			s := c.SecurityContext
			switch {
			case s == nil:
				t.Errorf("%s/%s has no security context", name, c.Name)
				continue
			case s.Privileged != nil && *s.Privileged:
				t.Errorf("%s/%s is privileged", name, c.Name)
			case s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation:
				t.Errorf("%s/%s can gain privileges", name, c.Name)
			case s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}):
				t.Errorf("%s/%s keeps capabilities it does not name", name, c.Name)
			}
			if seccomp(pod, c) != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s/%s has no filter of system calls", name, c.Name)
			}
			if name != "contiv-cleanup" && (s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem) {
				t.Errorf("%s/%s can write to its image", name, c.Name)
			}
		}
	}
	netmaster := restricted(t)["contiv-netmaster"]
	if user := netmaster.SecurityContext; user == nil || user.RunAsUser == nil || *user.RunAsUser == 0 || !*user.RunAsNonRoot {
		t.Error("netmaster runs as root")
	}
	if add := netmaster.Containers[0].SecurityContext.Capabilities.Add; len(add) > 0 {
		t.Errorf("netmaster has capabilities %s", add)
	}
}

func seccomp(pod corev1.PodSpec, c corev1.Container) corev1.SeccompProfileType {
	if p := c.SecurityContext.SeccompProfile; p != nil {
		return p.Type
	}
	if pod.SecurityContext != nil && pod.SecurityContext.SeccompProfile != nil {
		return pod.SecurityContext.SeccompProfile.Type
	}
	return ""
}

// TestCapabilitiesOfUnit: netplugin has the same in a pod and under systemd.
func TestCapabilitiesOfUnit(t *testing.T) {
	unit, err := os.ReadFile("../../scripts/systemd/netplugin.service")
	if err != nil {
		t.Fatal(err)
	}
	set := regexp.MustCompile(`(?m)^CapabilityBoundingSet=(.*)$`).FindSubmatch(unit)
	if set == nil {
		t.Fatal("the unit has no CapabilityBoundingSet")
	}
	want := strings.Fields(strings.ReplaceAll(string(set[1]), "CAP_", ""))
	var got []string
	for _, c := range restricted(t)["contiv-netplugin"].Containers[0].SecurityContext.Capabilities.Add {
		got = append(got, string(c))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("capabilities (-unit +pod):\n%s", diff)
	}
}

// TestStoreIsNetmastersAlone: no other pod sees its directory, with the store and the key of
// the cluster's authority.
func TestStoreIsNetmastersAlone(t *testing.T) {
	const store = "/var/lib/contiv"
	seen := 0
	for name, pod := range restricted(t) {
		for _, v := range pod.Volumes {
			if v.HostPath == nil {
				continue
			}
			within, err := filepath.Rel(store, v.HostPath.Path)
			above, err2 := filepath.Rel(v.HostPath.Path, store)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			switch touches := !strings.HasPrefix(within, "..") || !strings.HasPrefix(above, ".."); {
			case touches && name != "contiv-netmaster":
				t.Errorf("%s mounts %s", name, v.HostPath.Path)
			case touches:
				seen++
			}
		}
	}
	if seen != 1 {
		t.Errorf("netmaster mounts it %d times", seen)
	}
}

// TestImageOfManifests: they name what make image makes, and no moving tag.
func TestImageOfManifests(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\s*image: (\S+)$`).FindAllSubmatch(b, -1) {
			found++
			if string(m[1]) != image.Name {
				t.Errorf("%s has %s, expected %s", file, m[1], image.Name)
			}
		}
	}
	if found < 8 {
		t.Errorf("%d images in all", found)
	}
	if strings.HasSuffix(image.Name, ":latest") {
		t.Errorf("the image is called %s", image.Name)
	}
}
