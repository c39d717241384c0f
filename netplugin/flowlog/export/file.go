package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/contiv/netplugin/state/flowapi"
)

// fileSize is how large a file gets before it becomes <path>.1, in place of the one that was.
const fileSize = 64 << 20

// file appends JSON lines, one Event each, to a file. Only its owner can read it.
type file struct {
	path string
	most int64 // bytes
	keep int   // older ones, <path>.1 and so on
	dir  bool  // make its directory if there is none
	f    *os.File
	size int64
}

func (s *file) send(_ context.Context, events []*flowapi.Event) error {
	var b bytes.Buffer
	for _, ev := range events {
		line, err := json.Marshal(ev)
		if err != nil {
			return err
		}
		if b.Len() > 0 && int64(b.Len()+len(line)) >= s.most { // more than a file takes
			if err := s.write(b.Bytes()); err != nil {
				return err
			}
			b.Reset()
		}
		b.Write(append(line, '\n'))
	}
	return s.write(b.Bytes())
}

func (s *file) write(lines []byte) error {
	if err := s.open(int64(len(lines))); err != nil {
		return err
	}
	n, err := s.f.Write(lines)
	s.size += int64(n)
	if err != nil { // what is half written must not be continued
		_ = s.f.Truncate(s.size - int64(n))
		s.close()
	}
	return err
}

// open opens the file with room for n bytes.
func (s *file) open(n int64) error {
	if s.f == nil {
		if err := s.reopen(); err != nil {
			return err
		}
	}
	if s.size == 0 || s.size+n <= s.most {
		return nil
	}
	s.close()
	for i := s.keep; i > 0; i-- {
		if err := os.Rename(s.older(i-1), s.older(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.reopen()
}

func (s *file) reopen() error {
	if s.dir {
		if err := os.MkdirAll(filepath.Dir(s.path), 0o750); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	s.f, s.size = f, info.Size()
	return nil
}

// older is the path of the i-th older file; the 0th is the one that is written.
func (s *file) older(i int) string {
	if i == 0 {
		return s.path
	}
	return s.path + "." + strconv.Itoa(i)
}

func (s *file) close() {
	if s.f != nil {
		_ = s.f.Close() // every write has been checked
		s.f = nil
	}
}
