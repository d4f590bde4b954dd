package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// disk holds every value in its own file, root/ab/cd…, named by its key.
type disk struct {
	root  string
	limit int64 // below zero: none
	now   func() time.Time

	known   atomic.Int64 // bytes found when the directory was last scanned
	written atomic.Int64 // bytes written since
	evicted atomic.Int64

	mu       sync.Mutex
	looked   bool // the directory was scanned once
	trimming bool
	closed   bool
	wg       sync.WaitGroup
}

// touchEvery is how often the file of an entry in use is marked as used.
const touchEvery = time.Hour

// A file is a header and the value. The header distinguishes a complete file of ours from any
// other.
const (
	magic      = "parleyc\x01"
	headerSize = len(magic) + 32 + 8 + sha256.Size // magic, key, length, checksum
	maxValue   = 1 << 30
)

func header(key [32]byte, value []byte) []byte {
	h := make([]byte, 0, headerSize)
	h = append(h, magic...)
	h = append(h, key[:]...)
	h = binary.BigEndian.AppendUint64(h, uint64(len(value)))
	sum := sha256.Sum256(value)
	return append(h, sum[:]...)
}

func (d *disk) path(key [32]byte) string {
	name := hex.EncodeToString(key[:])
	return filepath.Join(d.root, name[:2], name[2:])
}

// read returns the value of key, or nil. A damaged file is removed and reported; that is no more
// than a miss.
func (d *disk) read(key [32]byte, now time.Time) ([]byte, error) {
	path := d.path(key)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value, used, err := readFile(f, key)
	f.Close()
	if err != nil {
		_ = os.Remove(path) // if it cannot be removed, the next read misses again
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if now.Sub(used) > touchEvery {
		d.touch(key, now)
	}
	return value, nil
}

// readFile reads and checks a file. used is when it was last marked as used.
func readFile(f *os.File, key [32]byte) (value []byte, used time.Time, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, used, err
	}
	size := info.Size() - int64(headerSize)
	if !info.Mode().IsRegular() || size < 0 || size > maxValue {
		return nil, used, fmt.Errorf("damaged: %d bytes", info.Size())
	}
	all := make([]byte, headerSize+int(size))
	if _, err := io.ReadFull(f, all); err != nil {
		return nil, used, err
	}
	value = all[headerSize:]
	if !bytes.Equal(all[:headerSize], header(key, value)) {
		return nil, used, errors.New("damaged: wrong checksum")
	}
	return value, info.ModTime(), nil
}

// touch marks a file as used. It may fail on a read-only directory, which does no harm.
func (d *disk) touch(key [32]byte, now time.Time) { _ = os.Chtimes(d.path(key), now, now) }

// write writes a value to a temporary file and renames it, so that no reader sees half of it.
func (d *disk) write(key [32]byte, value []byte) error {
	if len(value) > maxValue {
		return fmt.Errorf("%d bytes are too many", len(value))
	}
	path := d.path(key)
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix+"*")
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			f, err = os.CreateTemp(filepath.Dir(path), tempPrefix+"*")
		}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(header(key, value))
	if err == nil {
		_, err = f.Write(value)
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = replace(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	d.written.Add(int64(headerSize + len(value)))
	return nil
}

const tempPrefix = "tmp-"

// replace renames a file. Windows refuses while a process reads the existing file; then that file
// stays, which is as good.
func replace(from, to string) error {
	err := os.Rename(from, to)
	if err == nil {
		return nil
	}
	if info, e := os.Stat(to); e == nil && info.Mode().IsRegular() {
		return os.Remove(from)
	}
	return err
}
