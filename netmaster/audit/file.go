package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/syslog"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/contiv/netplugin/utils/errs"
)

// File is a log file that is rotated: PATH, and the older ones PATH.1 to PATH.Keep. Only its
// owner can read it. Safe for concurrent use.
type File struct {
	path     string
	maxBytes int64
	keep     int

	mu   sync.Mutex
	file *os.File
	size int64
}

// OpenFile opens a log file to append to, and makes it and its directory if need be. It is
// rotated at maxBytes; keep is how many older ones stay. The error's kind is Unavailable.
func OpenFile(path string, maxBytes int64, keep int) (*File, error) {
	f := &File{path: path, maxBytes: maxBytes, keep: keep}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, errs.New(errs.Unavailable, "audit log: %w", err)
	}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return errs.New(errs.Unavailable, "audit log: %w", err)
	}
	info, err := file.Stat()
	if err == nil {
		err = file.Chmod(0o600)
	}
	if err != nil {
		file.Close()
		return errs.New(errs.Unavailable, "audit log: %w", err)
	}
	f.file, f.size = file, info.Size()
	return nil
}

// Write implements Sink. A write that fails is tried with the file opened again, once.
func (f *File) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	if f.size > 0 && f.size+int64(len(line)) > f.maxBytes {
		if err := f.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(line)
	f.size += int64(n)
	if err != nil {
		f.file.Close()
		f.file = nil
	}
	return n, err
}

// rotate makes PATH to PATH.1 and so on, and begins a new file.
func (f *File) rotate() error {
	f.file.Close()
	f.file = nil
	for i := f.keep; i > 0; i-- {
		err := os.Rename(f.older(i-1), f.older(i))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errs.New(errs.Unavailable, "rotate the audit log: %w", err)
		}
	}
	if f.keep == 0 {
		if err := os.Remove(f.path); err != nil {
			return errs.New(errs.Unavailable, "rotate the audit log: %w", err)
		}
	}
	return f.open()
}

// older is the path of the i-th older file; the 0th is the current one.
func (f *File) older(i int) string {
	if i == 0 {
		return f.path
	}
	return f.path + "." + strconv.Itoa(i)
}

// Close implements Sink.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// Readers opens what is there, the oldest first. The caller closes them.
func (f *File) Readers() ([]io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []io.ReadCloser
	for i := f.keep; i >= 0; i-- {
		file, err := os.Open(f.older(i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			for _, r := range all {
				r.Close()
			}
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		all = append(all, file)
	}
	return all, nil
}

// OpenSyslog returns a sink that sends records to the host's syslog, facility authpriv. The
// error's kind is Unavailable.
func OpenSyslog(tag string) (Sink, error) {
	w, err := syslog.New(syslog.LOG_AUTHPRIV|syslog.LOG_INFO, tag)
	if err != nil {
		return nil, errs.New(errs.Unavailable, "audit log: syslog: %w", err)
	}
	return w, nil
}
