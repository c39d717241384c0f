// Package orphans finds what a lab left behind after it was taken down: processes,
// namespaces, mounts, links, files.
//
// What the machine's other processes do meanwhile does not matter: everything that is
// looked for bears a mark of the lab, namely its directory or a namespace of its.
package orphans

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/test/lab"
)

// Marks are what the things of a lab have in common.
type Marks struct {
	dir        string
	namespaces map[string]string // "net:[4026532001]" → "host1"
	links      map[string]bool   // links of this machine before the lab
}

// Before notes what the machine has before a lab in dir comes up.
func Before(dir string) (*Marks, error) {
	m := &Marks{dir: dir, namespaces: map[string]string{}, links: map[string]bool{}}
	links, err := netlinksafe.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	for _, l := range links {
		m.links[l.Attrs().Name] = true
	}
	return m, nil
}

// Note learns the namespaces of a running lab: those of its hosts and of everything in
// them.
func (m *Marks) Note(l *lab.Lab) error {
	own, err := namespacesOf("self")
	if err != nil {
		return err
	}
	mine := map[string]bool{}
	for _, ns := range own {
		mine[ns] = true
	}
	inits := map[string]string{} // pid namespace → host
	for _, h := range l.Hosts() {
		if h.PID() == 0 {
			continue
		}
		ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", h.PID()))
		if err != nil {
			return err
		}
		inits[ns] = h.Name
	}
	return eachProcess(func(pid string) error {
		namespaces, err := namespacesOf(pid)
		if err != nil {
			return err
		}
		for _, ns := range namespaces {
			if host, in := inits[ns]; in {
				for _, ns := range namespaces {
					if !mine[ns] {
						m.namespaces[ns] = host
					}
				}
			}
		}
		return nil
	})
}

// Find returns one line for each thing that is left.
func (m *Marks) Find() ([]string, error) {
	var found []string
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	err := eachProcess(func(pid string) error {
		line, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err != nil {
			return err
		}
		command := strings.TrimSpace(string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		if strings.Contains(command, lab.InitArg+" "+m.dir+" ") {
			add("process %s: %s", pid, command)
		}
		namespaces, err := namespacesOf(pid)
		if err != nil {
			return err
		}
		for _, ns := range namespaces {
			if host, ours := m.namespaces[ns]; ours {
				add("process %s in %s of %s: %s", pid, ns, host, command)
			}
		}
		return m.openNamespaces(pid, add)
	})
	if err != nil {
		return nil, err
	}
	if err := m.mounts(add); err != nil {
		return nil, err
	}
	links, err := netlinksafe.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	for _, l := range links {
		if name := l.Attrs().Name; !m.links[name] && ofLab(name) {
			add("link %s", name)
		}
	}
	if _, err := os.Lstat(m.dir); err == nil {
		add("directory %s", m.dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	sort.Strings(found)
	return found, nil
}

// ofLab tells the names of links that labs make from those of other tests that run on
// the machine at the same time.
func ofLab(link string) bool {
	for _, prefix := range []string{"host", "contiv", "vvport", "vport", "br-ext", "ovs-netdev", "control", "vtep", "trunk"} {
		if strings.HasPrefix(link, prefix) {
			return true
		}
	}
	return false
}

// openNamespaces finds namespaces that live on because a process has them open.
func (m *Marks) openNamespaces(pid string, add func(string, ...any)) error {
	fds, err := os.ReadDir("/proc/" + pid + "/fd")
	if err != nil {
		return err
	}
	for _, fd := range fds {
		target, err := os.Readlink("/proc/" + pid + "/fd/" + fd.Name())
		if err != nil {
			continue // closed meanwhile
		}
		if host, ours := m.namespaces[target]; ours {
			add("%s of %s, open in process %s as %s", target, host, pid, fd.Name())
		}
	}
	return nil
}

// mounts finds mounts of this machine that are below the lab's directory or hold one
// of its namespaces.
func (m *Marks) mounts(add func(string, ...any)) error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		root, point := fields[3], fields[4]
		if _, ours := m.namespaces[root]; ours || point == m.dir || strings.HasPrefix(point, m.dir+"/") {
			add("mount %s on %s", root, point)
		}
	}
	return lines.Err()
}

// eachProcess calls f for every process of the machine. One that ends meanwhile is
// passed over, and so is one that not even root may look into: it is no lab's.
func eachProcess(f func(pid string) error) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		err := f(e.Name())
		gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
		if err != nil && !gone && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("look at process %s: %w", e.Name(), err)
		}
	}
	return nil
}

func namespacesOf(pid string) ([]string, error) {
	var all []string
	for _, kind := range []string{"net", "mnt", "pid", "uts", "ipc"} {
		ns, err := os.Readlink("/proc/" + pid + "/ns/" + kind)
		if err != nil {
			return nil, err
		}
		all = append(all, ns)
	}
	return all, nil
}

// settle is how long the kernel may take to remove namespaces and links.
const settle = 10 * time.Second

// Check fails the test if anything is left.
func (m *Marks) Check(t testing.TB) {
	t.Helper()
	deadline := time.Now().Add(settle)
	for {
		found, err := m.Find()
		if err != nil {
			t.Errorf("look for orphans of the lab in %s: %v", m.dir, err)
			return
		}
		if len(found) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("left of the lab in %s:\n%s", filepath.Clean(m.dir), strings.Join(found, "\n"))
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
