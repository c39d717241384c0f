//go:build kubernetes

package kubernetes

import (
	"fmt"
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
	if err := c.PowerOff(t.Context(), "host2"); err != nil {
		t.Fatal(err)
	}
	c.eventually("netmaster misses host2", func() (bool, string) {
		out := c.netctl("endpoint", "gc", "--dry-run", "--older-than", "0s")
		return strings.Contains(out, "host2") && c.endpoints("default", "default-net") == before, out
	})
	c.kubectl("delete", "node", "host2")
	c.eventually("the endpoints of host2 go", func() (bool, string) {
		n := c.endpoints("default", "default-net")
		return n < before && c.netctl("endpoint", "inspect", "on-host1") != "", fmt.Sprintf("%d endpoints of %d", n, before)
	})
	c.eventually("host2 is no host any more", func() (bool, string) {
		out := c.netctl("cluster", "ls", "-q")
		return out == "host1\n" || out == "host1", out
	})
}
