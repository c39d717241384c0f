package pki

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/contiv/netplugin/utils/errs"
)

// Files of a Dir, and how large one may be, in bytes.
const (
	identityFile = "identity.pem" // private key, then certificate with intermediate ones
	rootsFile    = "roots.pem"
	maxFile      = 1 << 20
)

// Dir is the folder in which a daemon keeps its certificate. Key and certificate are one
// file, so that no crash leaves one without the other.
type Dir string

// Stored is what a Dir holds, in PEM.
type Stored struct{ Cert, Key, Roots []byte }

// Save replaces what is stored. The folder is made if need be, for its owner only.
func (d Dir) Save(s Stored) error {
	// The roots first: they believe the old certificate as well as the new one.
	if err := WriteFile(d.path(rootsFile), s.Roots); err != nil {
		return err
	}
	return WriteFile(d.path(identityFile), append(bytes.Clone(s.Key), s.Cert...))
}

// Load reads what is stored. The error's kind is NotFound if there is nothing, and Invalid,
// with what to do, if a file is damaged.
func (d Dir) Load() (Stored, error) {
	text, err := ReadFile(d.path(identityFile))
	if err != nil {
		return Stored{}, err
	}
	roots, err := ReadFile(d.path(rootsFile))
	if err != nil {
		return Stored{}, err
	}
	if _, err := tls.X509KeyPair(text, text); err != nil {
		return Stored{}, d.damaged(identityFile, err)
	}
	if _, err := ParseCertificates(roots); err != nil {
		return Stored{}, d.damaged(rootsFile, err)
	}
	key, cert := splitPEM(text)
	return Stored{Cert: cert, Key: key, Roots: roots}, nil
}

// Remove removes what is stored.
func (d Dir) Remove() error {
	for _, name := range []string{identityFile, rootsFile} {
		if err := os.Remove(d.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errs.New(errs.Internal, "remove the certificate: %w", err)
		}
	}
	return nil
}

func (d Dir) path(name string) string { return filepath.Join(string(d), name) }

func (d Dir) damaged(name string, err error) error {
	return errs.New(errs.Invalid, "%s is damaged: %w; remove %s and restart, so that a new certificate is made", d.path(name), err, d)
}

// Use puts what is stored into credentials. The error's kind is Invalid.
func (s Stored) Use(c *Credentials) error {
	if err := c.SetRoots(s.Roots); err != nil {
		return err
	}
	return c.SetPair(s.Cert, s.Key)
}

// ReadFile reads a file of at most 1 MiB. The error's kind is NotFound if there is none.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxFile {
		return nil, errs.New(errs.Invalid, "%s has %d bytes, expected at most %d", path, info.Size(), maxFile)
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errs.New(errs.NotFound, "%w", err)
	case err != nil:
		return nil, errs.New(errs.Unavailable, "%w", err)
	}
	return text, nil
}

// WriteFile replaces a file, readable by its owner only, in one step that a crash does not
// leave half done. Its folder is made if need be, mode 0700.
func WriteFile(path string, text []byte) (err error) {
	defer func() {
		if err != nil {
			err = errs.New(errs.Internal, "write %s: %w", path, err)
		}
	}()
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = giveToOwner(f, dir)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(dir)
}

// giveToOwner gives a file that root has made to the owner of its folder: a daemon that does
// not run as root must be able to read it.
func giveToOwner(f *os.File, dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 || owner.Uid == 0 {
		return nil
	}
	return f.Chown(int(owner.Uid), int(owner.Gid))
}

// syncDir makes a rename last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
