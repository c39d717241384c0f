// Package footprint keeps small what a daemon occupies of its host's memory.
package footprint

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// mapping is a part of the address space, as /proc/PID/smaps (proc(5)) tells of it.
type mapping struct {
	from, to  uintptr
	perms     string // rwxp
	path      string
	anonymous int // KiB that are not those of the file any more
}

// Shrink gives memory back that a start needs and work does not: garbage, and the parts
// of the program file that only the start has read (the tables of large libraries). What
// is needed of them again comes back from the file by itself. It returns how much of the
// file was released, in bytes of address space.
func Shrink() (int, error) {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return 0, fmt.Errorf("shrink: %w", err)
	}
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return 0, fmt.Errorf("shrink: %w", err)
	}
	n := 0
	for _, m := range mappings(text) {
		// Pages that were changed before they became read-only (relocations) are no longer
		// in the file; a mapping that has any stays.
		if m.path != self || strings.Contains(m.perms, "w") || !strings.HasSuffix(m.perms, "p") || m.anonymous > 0 {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED); errno != 0 {
			return n, fmt.Errorf("shrink: madvise: %w", errno)
		}
		n += int(m.to - m.from)
	}
	return n, nil
}

// mappings reads smaps.
func mappings(text []byte) []mapping {
	var all []mapping
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		var m mapping
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &m.from, &m.to, &m.perms); n == 3 {
			if fields := strings.Fields(line); len(fields) > 5 {
				m.path = strings.Join(fields[5:], " ")
			}
			all = append(all, m)
			continue
		}
		var kib int
		if n, _ := fmt.Sscanf(line, "Anonymous: %d kB", &kib); n == 1 && len(all) > 0 {
			all[len(all)-1].anonymous = kib
		}
	}
	return all
}
