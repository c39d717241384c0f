// Package nsenter runs Go code, and starts programs, inside the namespaces of
// another process.
//
// Namespaces belong to threads. A goroutine that enters one is pinned to its
// thread, and the thread is thrown away afterwards, so that no other goroutine
// ever finds itself in a foreign namespace. A program started by such a goroutine
// inherits the namespaces and outlives the thread.
package nsenter

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Thread runs f on an operating system thread that is discarded when f returns,
// and returns f's error. f may change anything that belongs to a thread.
func Thread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			// The main thread cannot be discarded, and /proc/<pid>/ns shows its
			// namespaces as the process's own: hold it while another one works.
			done <- Thread(f)
			runtime.UnlockOSThread()
			return
		}
		done <- f()
	}()
	return <-done
}

// Host runs f in the mount, network, pid, uts and ipc namespaces of process pid.
// Programs that f starts are in its pid namespace; f itself is not. When netns is
// not empty it is the path, as seen in that mount namespace, of a network namespace
// to use instead of the process's own; then /sys shows that one's links, and mounts
// that f makes are seen by f and what it starts alone.
func Host(pid int, netns string, f func() error) error {
	target, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(target)
	return Thread(func() error {
		// A mount namespace can be entered only by a thread that shares its root
		// and working directory with no other.
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return fmt.Errorf("unshare working directory: %w", err)
		}
		const all = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC
		if err := unix.Setns(target, all); err != nil {
			return fmt.Errorf("enter namespaces of process %d: %w", pid, err)
		}
		if netns != "" {
			if err := enterNetwork(netns); err != nil {
				return err
			}
			if err := ownSys(); err != nil {
				return err
			}
		}
		return f()
	})
}

// ownSys gives the calling thread a /sys of its network namespace.
func ownSys() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare mounts: %w", err)
	}
	// What the host unmounts goes here, too, or a namespace would live on in a copy.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts to this thread: %w", err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mount sysfs on /sys: %w", err)
	}
	return nil
}

// Network runs f in the network namespace at path, for example /proc/1234/ns/net.
func Network(path string, f func() error) error {
	return Thread(func() error {
		if err := enterNetwork(path); err != nil {
			return err
		}
		return f()
	})
}

func enterNetwork(path string) error {
	ns, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", path, err)
	}
	defer unix.Close(ns)
	if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", path, err)
	}
	return nil
}
