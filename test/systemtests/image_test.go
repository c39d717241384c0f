package systemtests

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contiv/netplugin/install/image"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// TestImage: a Docker Engine takes the container image, and it becomes what it is asked
// to be.
func TestImage(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "image.tar")
	cmd := exec.Command("go", "run", "./scripts/image", "-bin", labtest.Bin(t), "-o", archive)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make the image: %v: %s", err, out)
	}
	l := labtest.Up(t, lab.Config{Hosts: 1, Docker: lab.DockerPacked})
	c := dockers{cluster{l, t}}
	if out := c.docker("host1", "load", "-i", archive); !strings.Contains(out, image.Name) {
		t.Errorf("docker load says %s", out)
	}
	for _, program := range []string{"netmaster", "netplugin"} {
		out := c.docker("host1", "run", "--rm", "--net", "host", "-e", "CONTIV_ROLE="+program, image.Name, "--version")
		if !strings.HasPrefix(out, "Version: ") {
			t.Errorf("%s --version says %s", program, out)
		}
	}
	out, err := c.try("host1", "run", "--rm", "--net", "host", image.Name)
	if err == nil || !strings.Contains(err.Error(), "exit status 22") {
		t.Errorf("without a role: %s, %v", out, err)
	}
}
