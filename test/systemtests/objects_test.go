package systemtests

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/lab"
)

// objectsEnv names the directory from which this binary serves objects, as an API server
// of Kubernetes would, when a test starts it in a host.
const objectsEnv = "CONTIV_TEST_OBJECTS"

const objectsAddress = "127.0.0.1:18080"

// object is any object of Kubernetes.
type object = map[string]any

// objects are what the API server of a lab has, by resource. Each resource is a file.
type objects struct {
	t   *testing.T
	dir string
}

// objectsOn gives hosts of a lab an API server that has some objects, and tells
// netplugin of it.
func objectsOn(c cluster, first map[string][]object, hosts ...string) objects {
	c.t.Helper()
	o := objects{c.t, c.t.TempDir()}
	for resource := range groupVersions {
		o.set(resource, first[resource]...)
	}
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, host := range hosts {
		cmd, err := c.Start(c.t.Context(), host, lab.Stdio{Env: []string{objectsEnv + "=" + o.dir}}, self, "-test.run=^TestObjectServer$")
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		c.run(host, "mkdir -p /var/contiv/config && echo '{\"K8S_API_SERVER\":\"http://"+objectsAddress+"\",\"K8S_TOKEN\":\"x\"}' > /var/contiv/config/contiv.json")
		c.eventually("an API server on "+host, func() error {
			_, err := c.Output(c.t.Context(), host, "nc", "-z", "127.0.0.1", "18080")
			return err
		})
		c.restart(host, "netplugin", syscall.SIGTERM)
	}
	return o
}

// set makes objects all there are of a resource, in one step.
func (o objects) set(resource string, all ...object) {
	o.t.Helper()
	raw, err := json.Marshal(append([]object{}, all...))
	path := filepath.Join(o.dir, resource)
	if err == nil {
		err = os.WriteFile(path+".new", raw, 0o644)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

var groupVersions = map[string][2]string{
	"services": {"v1", "Service"}, "nodes": {"v1", "Node"}, "pods": {"v1", "Pod"}, "namespaces": {"v1", "Namespace"},
	"endpointslices": {"discovery.k8s.io/v1", "EndpointSlice"}, "networkpolicies": {"networking.k8s.io/v1", "NetworkPolicy"},
}

// TestObjectServer is the API server that objectsOn starts: it lists and watches.
func TestObjectServer(t *testing.T) {
	dir := os.Getenv(objectsEnv)
	if dir == "" {
		return
	}
	t.Fatal(http.ListenAndServe(objectsAddress, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resource, query := filepath.Base(r.URL.Path), r.URL.Query()
		kind, known := groupVersions[resource]
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !known:
			http.NotFound(w, r)
		case query.Get("sendInitialEvents") == "true": // clients list, then
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(object{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Invalid", "code": http.StatusUnprocessableEntity})
		case query.Get("watch") == "":
			all := []object{}
			for _, o := range readObjects(dir, resource) {
				all = append(all, o)
			}
			// A version of 0 has the watch begin with everything.
			_ = json.NewEncoder(w).Encode(object{"apiVersion": kind[0], "kind": kind[1] + "List", "metadata": object{"resourceVersion": "0"}, "items": all})
		default:
			watchObjects(w, r, dir, resource)
		}
	})))
}

// watchObjects tells of all objects, and then of what changes, until nobody listens.
func watchObjects(w http.ResponseWriter, r *http.Request, dir, resource string) {
	sent := map[string]string{}
	last := map[string]object{}
	events := json.NewEncoder(w)
	for r.Context().Err() == nil {
		now := readObjects(dir, resource)
		for key, o := range now {
			if text := fmt.Sprint(o); sent[key] != text {
				event := "MODIFIED"
				if sent[key] == "" {
					event = "ADDED"
				}
				sent[key], last[key] = text, o
				_ = events.Encode(object{"type": event, "object": o})
			}
		}
		for key, o := range last {
			if _, ok := now[key]; !ok {
				delete(sent, key)
				delete(last, key)
				_ = events.Encode(object{"type": "DELETED", "object": o})
			}
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func readObjects(dir, resource string) map[string]object {
	out := map[string]object{}
	var all []object
	raw, err := os.ReadFile(filepath.Join(dir, resource))
	if err != nil || json.Unmarshal(raw, &all) != nil {
		return out
	}
	kind := groupVersions[resource]
	for _, o := range all {
		o["apiVersion"], o["kind"] = kind[0], kind[1]
		if m, ok := o["metadata"].(object); ok {
			m["resourceVersion"] = "1"
			out[fmt.Sprint(m["namespace"], "/", m["name"])] = o
		}
	}
	return out
}
