//go:build kubernetes

package kubernetes

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestDeletedNode: the addresses of a node that is off and whose Node is deleted are free
// again without the grace of a day; those of a node that is off alone are not.
func TestDeletedNode(t *testing.T) {
	c := up(t)
	c.wait("--for=create", "serviceaccount/default")
	for _, host := range []string{"host1", "host2"} {
		c.apply(sleeper("default", "on-"+host, host))
	}
	c.wait("--for=condition=Ready", "pod/on-host1", "pod/on-host2")
	before := c.endpoints("default", "default-net")
	if before < 2 {
		t.Fatalf("%d endpoints, expected one a pod at least", before)
	}
	host2, err := c.Host("host2")
	if err != nil {
		t.Fatal(err)
	}
	c.eventually("netmaster knows the Node of host2", func() (bool, string) {
		said, err := os.ReadFile(host2.LogFile("netplugin"))
		return strings.Contains(string(said), `msg="host published"`) && strings.Contains(string(said), "node=host2"), fmt.Sprint(err)
	})
	if err := c.PowerOff(t.Context(), "host2"); err != nil {
		t.Fatal(err)
	}
	c.eventually("netmaster misses host2", func() (bool, string) {
		out, err := c.tryNetctl("endpoint", "gc", "--dry-run", "--older-than", "0s")
		return err == nil && strings.Contains(out, "host2"), fmt.Sprint(out, err)
	})
	if n := c.endpoints("default", "default-net"); n != before {
		t.Fatalf("%d endpoints while the node is off, expected %d", n, before)
	}
	c.kubectl("delete", "node", "host2")
	c.eventually("the endpoints of host2 go", func() (bool, string) {
		n, err := c.tryEndpoints("default", "default-net")
		return err == nil && n < before, fmt.Sprintf("%d endpoints of %d, %v", n, before, err)
	})
	c.netctl("endpoint", "inspect", "on-host1")
	c.eventually("host2 is no host any more", func() (bool, string) {
		out, err := c.tryNetctl("cluster", "ls", "-q")
		return err == nil && strings.TrimSpace(out) == "host1", fmt.Sprint(out, err)
	})
}
