package hostinit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const cgroupDir = "/sys/fs/cgroup"

// mountAll gives the host its own view of the file system. Sources are opened
// before anything is mounted, because the new mounts may hide them.
func mountAll(c Config) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	sources := make([]*os.File, len(c.Binds))
	for i, b := range c.Binds {
		f, err := openPath(b.Source)
		if err != nil {
			return err
		}
		defer f.Close()
		sources[i] = f
	}
	// A new /sys shows the links of the new network namespace; the cgroups below it
	// stay the machine's.
	cgroups, err := openPath(cgroupDir)
	if err == nil {
		defer cgroups.Close()
	}
	for _, m := range []struct{ kind, target, options string }{
		{"proc", "/proc", ""},
		{"sysfs", "/sys", ""},
		{"tmpfs", "/run", "mode=755"},
		{"tmpfs", "/dev/shm", "mode=1777"},
	} {
		if err := unix.Mount(m.kind, m.target, m.kind, 0, m.options); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.target, err)
		}
	}
	if cgroups != nil {
		if err := bind(cgroups, cgroupDir, unix.MS_REC); err != nil {
			return err
		}
	}
	for _, dir := range []string{runDir, NetnsDir, "/run/lock", "/run/openvswitch", "/run/docker/plugins"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, dir := range c.Overlays {
		if err := overlay(dir); err != nil {
			return err
		}
	}
	for i, b := range c.Binds {
		if err := os.MkdirAll(b.Target, 0o755); err != nil {
			return err
		}
		if err := bind(sources[i], b.Target, unix.MS_REC); err != nil {
			return err
		}
		if b.ReadOnly {
			if err := unix.Mount("", b.Target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				return fmt.Errorf("make %s read-only: %w", b.Target, err)
			}
		}
	}
	// As on a machine of its own: mounts reach the mount namespaces made from this one.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts in the host: %w", err)
	}
	return nil
}

func openPath(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func bind(source *os.File, target string, flags uintptr) error {
	from := fmt.Sprintf("/proc/self/fd/%d", source.Fd())
	if err := unix.Mount(from, target, "", unix.MS_BIND|flags, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", source.Name(), target, err)
	}
	return nil
}

// overlay keeps the host's changes to dir in the memory behind /run, which works
// whatever file system the machine's own dir is on.
func overlay(dir string) error {
	base := filepath.Join(runDir, "overlay", strings.ReplaceAll(strings.Trim(dir, "/"), "/", "-"))
	upper, work := filepath.Join(base, "upper"), filepath.Join(base, "work")
	for _, d := range []string{upper, work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	options := "lowerdir=" + dir + ",upperdir=" + upper + ",workdir=" + work
	if err := unix.Mount("overlay", dir, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount overlay on %s: %w", dir, err)
	}
	return nil
}

// writeFiles replaces files, and symbolic links, by files with the given content.
func writeFiles(files map[string]string) error {
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
