//go:build kubernetes

package kubernetes

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/test/lab"
)

// guide is docs/kubernetes.md, for a reader who types what is in it: indented blocks, each
// on the machine with the source if it is a make, on every node if the text before it ends
// so, else where the control plane is.
type guide struct {
	cluster
	source string // of Contiv
	work   string // where commands are typed; has what the text says is brought there
	text   string
}

func openGuide(c cluster) guide {
	c.t.Helper()
	source, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		c.t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(source, "docs", "kubernetes.md"))
	if err != nil {
		c.t.Fatal(err)
	}
	g := guide{c, source, c.t.TempDir(), string(text)}
	for _, name := range []string{"dist", "install"} {
		if err := os.Symlink(filepath.Join(source, name), filepath.Join(g.work, name)); err != nil {
			c.t.Fatal(err)
		}
	}
	return g
}

func (g guide) run(name string, f func(g guide)) {
	g.t.Helper()
	g.cluster.run(name, func(c cluster) {
		g.cluster = c
		f(g)
	})
}

// block is commands that are typed in one place.
type block struct {
	before string // the line of text before it
	script string
}

// blocks are those of a section.
func (g guide) blocks(title string) (all []block) {
	g.t.Helper()
	_, section, found := strings.Cut(g.text, "\n## "+title+"\n")
	if !found {
		g.t.Fatalf("there is no section %q", title)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	inside, text := false, ""
	for line := range strings.Lines(section) {
		command, indented := strings.CutPrefix(line, "    ")
		switch {
		case indented && inside:
			all[len(all)-1].script += command
		case indented:
			all = append(all, block{text, command})
		case strings.TrimSpace(line) != "":
			text = strings.TrimSpace(line)
		}
		inside = indented
	}
	if len(all) == 0 {
		g.t.Fatalf("section %q has no commands", title)
	}
	return all
}

// slow bounds a command that may wait for others; it only ends a test that has failed.
const slow = 5 * time.Minute

// follow types the commands of a section and returns what they print. Before contiv.yaml
// is applied it is edited. What works a moment later is typed until it does.
func (g guide) follow(title string, edits ...string) string {
	g.t.Helper()
	var out strings.Builder
	for _, b := range g.blocks(title) {
		if strings.HasPrefix(b.script, "kubectl apply -f contiv.yaml") {
			g.edit(edits)
		}
		if strings.HasPrefix(b.before, "A moment later ") {
			g.eventually(b.before, func() (bool, string) {
				said, err := g.try(b)
				if err == nil {
					out.WriteString(said)
				}
				return err == nil, said
			})
			continue
		}
		out.WriteString(g.do(b))
	}
	return out.String()
}

// edit replaces texts in contiv.yaml: what is there, and what is to be there, by turns.
func (g guide) edit(edits []string) {
	g.t.Helper()
	path := filepath.Join(g.work, "contiv.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		g.t.Fatal(err)
	}
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(string(content), edits[i]) {
			g.t.Fatalf("contiv.yaml has no %q", edits[i])
		}
	}
	if err := os.WriteFile(path, []byte(strings.NewReplacer(edits...).Replace(string(content))), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

func (g guide) do(b block) string {
	g.t.Helper()
	out, err := g.try(b)
	if err != nil {
		g.t.Fatalf("%s: %v: %s", b.script, err, out)
	}
	g.t.Logf("%s%s", b.script, out)
	return out
}

func (g guide) try(b block) (string, error) {
	ctx, cancel := context.WithTimeout(g.t.Context(), slow)
	defer cancel()
	if strings.HasPrefix(b.script, "make ") {
		cmd := exec.CommandContext(ctx, "sh", "-ec", b.script)
		cmd.Dir = g.source
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	hosts := g.Hosts()[:1]
	if strings.HasSuffix(b.before, "On every node:") {
		hosts = g.Hosts()
	}
	said := make([]strings.Builder, len(hosts))
	var group errgroup.Group
	for i, h := range hosts {
		group.Go(func() error {
			return h.Run(ctx, lab.Stdio{Out: &said[i], Err: &said[i], Env: []string{
				"PATH=/opt/kubernetes/bin:/usr/sbin:/usr/bin:/sbin:/bin", "KUBECONFIG=/etc/kubernetes/admin.kubeconfig",
			}}, "sh", "-ec", "cd "+g.work+"\n"+b.script)
		})
	}
	err := group.Wait()
	var out strings.Builder
	for i := range said {
		out.WriteString(said[i].String())
	}
	return out.String(), err
}

// TestGuideIsRead: every section with commands about the cluster is followed by a test.
func TestGuideIsRead(t *testing.T) {
	g := openGuide(cluster{t: t})
	followed := map[string]bool{quickStart: true, logins: true, changes: true, ownEtcd: true, noSwitch: true, leave: true, "A cluster on one machine": true}
	for _, section := range strings.Split(g.text, "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		if strings.Contains(body, "\n    ") && !followed[title] {
			t.Errorf("nobody follows the section %q", title)
		}
	}
}
