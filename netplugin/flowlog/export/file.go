package export

import (
	"bytes"
	"context"
	"encoding/json"
	"os"

	"github.com/contiv/netplugin/state/flowapi"
)

// fileSize is how large a file gets before it becomes <path>.1, in place of the one that was.
const fileSize = 64 << 20

// file appends JSON lines to a file.
type file struct {
	path string
	most int64 // bytes
	f    *os.File
	size int64
}

func (s *file) send(_ context.Context, records []*flowapi.Record) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, r := range records {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	if err := s.open(int64(b.Len())); err != nil {
		return err
	}
	n, err := s.f.Write(b.Bytes())
	s.size += int64(n)
	if err != nil { // what is half written must not be continued
		_ = s.f.Truncate(s.size - int64(n))
		s.close()
	}
	return err
}

// open opens the file with room for n bytes.
func (s *file) open(n int64) error {
	if s.f != nil && s.size+n > s.most {
		s.close()
		if err := os.Rename(s.path, s.path+".1"); err != nil {
			return err
		}
	}
	if s.f != nil {
		return nil
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
	if s.size > 0 && s.size+n > s.most {
		return s.open(n)
	}
	return nil
}

func (s *file) close() {
	if s.f != nil {
		_ = s.f.Close() // every write has been checked
		s.f = nil
	}
}
