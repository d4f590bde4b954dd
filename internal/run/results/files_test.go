package results

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	db "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"parley/internal/run/runfile"
)

// TestTwo checks that two processes that follow a run with one index count everything once.
func TestTwo(t *testing.T) {
	t.Parallel()
	store, add := record(t, 3)
	one, two := open(t, store, "r1"), open(t, store, "r1")
	for i := 3; i < 30; i++ {
		add(i)
		update(t, one)
		update(t, two)
		for _, x := range []*Index{two, one} {
			if _, err := x.UpdateTexts(t.Context(), 1000); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, r := range pages(t, one, Query{Limit: 100}) {
		if r.Calls != 2 {
			t.Errorf("%+v", r)
		}
	}
	if hits, err := one.Search(t.Context(), "answer8", 0, 10); err != nil || len(hits) != 2 {
		t.Errorf("%v %v", hits, err)
	}
}

// TestDamagedTexts checks that the texts of a damaged run are added once, whatever is left out.
func TestDamagedTexts(t *testing.T) {
	t.Parallel()
	written, _ := record(t, 12)
	script(t, written.Path(), `UPDATE replies SET seat = 'x' WHERE episode IN (3, 4)`)
	store, err := runfile.OpenRead(written.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Salvage(t.Context()); err != nil || len(store.Lost().Damaged) != 2 {
		t.Fatal(err, store.Lost())
	}
	x := open(t, store, "r1")
	for last := -1; ; {
		n, err := x.UpdateTexts(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		if n == last {
			break
		}
		last = n
	}
	for word, want := range map[string]int{"answer2": 2, "answer3": 0, "answer5": 2, "answer8": 2, "answer11": 2} {
		if hits, err := x.Search(t.Context(), word, 0, 10); err != nil || len(hits) != want {
			t.Errorf("%s: %v %v, want %d", word, hits, err, want)
		}
	}
}

// script runs SQL on a database.
func script(t *testing.T, path, sql string) {
	t.Helper()
	c, err := db.OpenConn(path, db.OpenReadWrite, db.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sqlitex.ExecuteScript(c, sql, nil), c.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestOtherFiles checks that an index of ours that cannot be used is made again, and that nothing else in its
// place is changed: the index is then in memory.
func TestOtherFiles(t *testing.T) {
	t.Parallel()
	const endless = `WITH RECURSIVE n (entries, texts, version, run) AS (SELECT 0, 0, 1, 'r1' UNION ALL SELECT entries + 1, 0, 1, 'r1' FROM n) SELECT * FROM n`
	for name, c := range map[string]struct {
		ours    bool // an index is there first
		prepare func(path string)
		kept    bool // the file stays as it is
	}{
		"of another run": {ours: true, prepare: func(path string) { script(t, path, `UPDATE meta SET run = 'r0'`) }},
		"ahead":          {ours: true, prepare: func(path string) { script(t, path, `UPDATE meta SET entries = 99999999`) }},
		"changed":        {ours: true, prepare: func(path string) { script(t, path, `ALTER TABLE episodes RENAME COLUMN calls TO other`) }},
		"endless":        {ours: true, prepare: func(path string) { script(t, path, `DROP TABLE meta; CREATE VIEW meta AS `+endless) }},
		"garbage":        {kept: true, prepare: func(path string) { put(t, path, strings.Repeat("garbage ", 1000)) }},
		"a database":     {kept: true, prepare: func(path string) { script(t, path, `CREATE TABLE meta (x); INSERT INTO meta VALUES (1)`) }},
		"a link": {kept: true, prepare: func(path string) {
			script(t, path+".other", `CREATE TABLE meta (x)`)
			if err := os.Symlink(path+".other", path); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, _ := record(t, 5)
			path := store.Path() + Suffix
			if c.ours {
				x := open(t, store, "r1")
				update(t, x)
				if err := x.Close(); err != nil {
					t.Fatal(err)
				}
			}
			c.prepare(path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			x := open(t, store, "r1")
			update(t, x)
			if got := pages(t, x, Query{Limit: 100}); len(got) != 5 || got[1].Calls != 2 {
				t.Errorf("%+v", got)
			}
			after, err := os.ReadFile(path)
			if err != nil || c.kept != bytes.Equal(before, after) {
				t.Errorf("the file is kept: %v, want %v (%v)", bytes.Equal(before, after), c.kept, err)
			}
		})
	}
	store, _ := record(t, 5)
	if err := os.MkdirAll(store.Path()+Suffix, 0o700); err != nil {
		t.Fatal(err)
	}
	update(t, open(t, store, "r1"))
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
