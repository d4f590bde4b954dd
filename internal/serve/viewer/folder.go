package viewer

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// marker is the file by which a folder that we wrote is known. Its lines after the first name the other files.
const marker = "parley-site.txt"

// maxList is how much is read of the marker.
const maxList = 64 << 20

const markerText = "This folder was written by parley view --export, which may overwrite it and delete the files below. Open index.html."

// claim checks that the folder is empty or ours, reads what earlier exports wrote, and marks it.
func (w *writer) claim() error {
	entries, err := fs.ReadDir(w.root.FS(), ".")
	if err != nil {
		return err
	}
	info, err := w.root.Lstat(marker)
	if len(entries) > 0 && (err != nil || !info.Mode().IsRegular()) {
		return fmt.Errorf("%w: %s; name an empty folder", ErrFolder, w.root.Name())
	}
	if w.list, err = w.root.OpenFile(marker, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644); err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(w.list, maxList))
	if err != nil {
		return err
	}
	if lines := strings.Split(string(b), "\n"); len(lines) > 1 { // what follows the last newline is cut off
		w.old = lines[1 : len(lines)-1]
		return nil
	}
	_, err = fmt.Fprintln(w.list, markerText)
	return err
}

// tidy deletes the files of earlier exports that this one did not write, and names only those that it wrote.
func (w *writer) tidy() error {
	for _, name := range w.old {
		if w.taken[strings.ToLower(name)] || !w.ours(name) {
			continue
		}
		if err := w.root.Remove(name); err != nil {
			return err
		}
		for dir := path.Dir(name); dir != "." && w.root.Remove(dir) == nil; dir = path.Dir(dir) { // it fails if the folder is not empty
		}
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, markerText)
	for _, name := range w.files {
		fmt.Fprintln(&b, name)
	}
	if err := w.root.WriteFile(marker+".new", b.Bytes(), 0o644); err != nil {
		return err
	}
	return w.root.Rename(marker+".new", marker)
}

// ours reports whether a name is that of a regular file in the folder, and no part of it is a link: a stranger may have
// written the list.
func (w *writer) ours(name string) bool {
	if !fs.ValidPath(name) {
		return false
	}
	for at := path.Dir(name); at != "."; at = path.Dir(at) {
		if info, err := w.root.Lstat(at); err != nil || !info.IsDir() {
			return false
		}
	}
	info, err := w.root.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}
