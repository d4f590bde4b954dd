package viewer

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	db "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// TestUnreadable checks that a file of which nothing can be read is listed with its error, and that the others are shown.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	two(t, folder)
	c, err := db.OpenConn(filepath.Join(folder, "a.parley"), db.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sqlitex.ExecuteScript(c, `UPDATE events SET data = '{' WHERE what = 'begun'`, nil), c.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "c.parley"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, folder)
	for _, c := range []struct {
		path, want string
		status     int
	}{
		{"/", "This file is damaged: entry 1 does not match its checksum.", http.StatusOK},
		{"/", "This is not a run file.", http.StatusOK},
		{"/", "2 of 2", http.StatusOK},
		{"/compare", "b.parley", http.StatusOK},
		{"/run/b.parley", "2 of 2", http.StatusOK},
		{"/run/a.parley", "Nothing of this file can be read", http.StatusInternalServerError},
		{"/run/c.parley/episodes", "Nothing of this file can be read", http.StatusInternalServerError},
	} {
		if status, body, _ := s.get(c.path); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d: no %q in %s", c.path, status, c.want, body)
		}
	}
	if _, err := New(Config{Paths: []string{filepath.Join(folder, "c.parley")}}); err == nil || !strings.Contains(err.Error(), "not a run file") {
		t.Errorf("a file that is not a run file is served: %v", err)
	}
}

// TestNames checks that names with any bytes can be used on every page.
func TestNames(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	two(t, folder)
	name := "\xff\xfe\n<a>.parley"
	if err := os.Rename(filepath.Join(folder, "a.parley"), filepath.Join(folder, name)); err != nil {
		t.Skip("the file system has no such names:", err)
	}
	shown := `\xff\xfe\n<a>.parley`
	at := runPath(shown)
	s := serve(t, folder)
	for path, want := range map[string]string{
		"/": at, at: "2 of 2", at + "/episodes": "2 episodes in all", at + "/episodes/0": "words 4 of all", at + "/search?q=words": "words",
		"/compare?b=b.parley&a=" + url.QueryEscape(shown): "points",
	} {
		if status, body, _ := s.get(path); status != http.StatusOK || !strings.Contains(body, want) || strings.Contains(body, "\xff") {
			t.Errorf("%s: %d: no %q in %s", path, status, want, body)
		}
	}
	if _, body, _ := serve(t, filepath.Join(folder, name)).get("/"); !strings.Contains(body, "2 of 2") {
		t.Errorf("the only file: %s", body)
	}
}

// TestDeleted checks that an open page is told that its run file was deleted, and that its events then end.
func TestDeleted(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	two(t, folder)
	s := serve(t, folder)
	events, grown := s.events("/run/a.parley/events")
	if err := os.Remove(filepath.Join(folder, "a.parley")); err != nil {
		t.Skip("the system deletes no open file:", err)
	}
	for status := 0; status != http.StatusNotFound; { // an event may be of the index
		grown()
		status, _, _ = s.get("/run/a.parley")
	}
	for events.Scan() { // until the server ends them
		continue
	}
}

// TestNotModified checks that a page is sent again only if it is another.
func TestNotModified(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.parley")
	say := record(t, file)
	s := serve(t, file)
	const page = "/run/a.parley/episodes/0"
	_, first, h := s.get(page)
	if status, body, _ := s.get(page, "If-None-Match", h.Get("ETag")); status != http.StatusNotModified || body != "" {
		t.Errorf("the same page: %d %s", status, body)
	}
	say("something new")
	if status, body, _ := s.get(page, "If-None-Match", h.Get("ETag")); status != http.StatusOK || body == first {
		t.Errorf("another page: %d", status)
	}
	if status, _, missing := s.get("/nothing"); status != http.StatusNotFound {
		t.Error(status)
	} else if status, _, _ := s.get("/nothing", "If-None-Match", missing.Get("ETag")); status != http.StatusNotFound {
		t.Errorf("a page that is missing: %d", status)
	}
}
