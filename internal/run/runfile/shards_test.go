package runfile

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"

	"parley/internal/kit/files"
	"parley/journal"
	"parley/journal/journaltest"
	"parley/llm"
	"parley/world"
)

func mustOpenSharded(t *testing.T, path string, mode Mode, shards int) *Store {
	t.Helper()
	s, err := OpenSharded(context.Background(), path, mode, shards)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestShardedJournal: a run file with shards is a journal as any other.
func TestShardedJournal(t *testing.T) {
	t.Parallel()
	journaltest.Exercise(t, func(t *testing.T) (journal.Journal, func() journal.Journal) {
		path := filepath.Join(t.TempDir(), "run.db")
		s := mustOpenSharded(t, path, Create, 3)
		return s, func() journal.Journal {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, path, Resume)
			return s
		}
	})
}

func TestShardedFencing(t *testing.T) {
	t.Parallel()
	unlocked := func(string) (*files.Guard, error) { return nil, nil }
	journaltest.Fencing(t, func(t *testing.T) (first, second journal.Journal) {
		path := filepath.Join(t.TempDir(), "run.db")
		for _, j := range []*journal.Journal{&first, &second} {
			s, err := open(t.Context(), path, Either, 2, unlocked)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			*j = s
		}
		return first, second
	})
}

// TestShardedPlans: queries look rows up in every shard, and neither copy nor sort them.
func TestShardedPlans(t *testing.T) {
	t.Parallel()
	s := mustOpenSharded(t, filepath.Join(t.TempDir(), "run.db"), Create, MaxShards)
	err := s.read(func(r *reader) error {
		for _, query := range []string{
			turnsSQL + inSpan, turnsSQL + `WHERE seq = ?`, repliesSQL + inSpan, repliesSQL + `WHERE seq = ?`, briefSQL + inSpan,
			r.union(replayRepliesSQL, false) + ` ORDER BY 1`, `SELECT id, sum, text, rest FROM texts WHERE id = ?`,
		} {
			stmt, _, err := r.conn.PrepareTransient(`EXPLAIN QUERY PLAN ` + query)
			if err != nil {
				return err
			}
			var plan []string
			for {
				found, err := stmt.Step()
				if err != nil {
					return err
				}
				if !found {
					break
				}
				plan = append(plan, stmt.ColumnText(3))
			}
			if err := stmt.Finalize(); err != nil {
				return err
			}
			text := strings.Join(plan, "\n")
			for _, slow := range []string{"SCAN r\n", "SCAN turns", "SCAN replies", "SCAN texts", "TEMP B-TREE", "MATERIALIZE", "AUTOMATIC"} {
				if strings.Contains(text+"\n", slow) {
					t.Errorf("%s:\n%s", query, text)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// reread checks what a file has when it is opened to be read, and that nothing in it is damaged.
func reread(t *testing.T, path string, want []journal.Entry) {
	t.Helper()
	s, err := OpenRead(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	journaltest.Same(t, s, want)
	failed := 0
	for _, e := range want {
		if r, ok := e.(*journal.Replied); ok && (r.Error != nil || r.Response != nil && r.Response.Finish == llm.FinishRefused) {
			failed++
		}
	}
	if err := s.Failed(t.Context(), func(journal.Entry) error { failed--; return nil }); err != nil || failed != 0 {
		t.Errorf("%d failed replies are missing: %v", failed, err)
	}
	if found, err := s.Verify(t.Context()); err != nil || len(found.Damage) > 0 {
		t.Errorf("it is damaged: %+v, %v", found, err)
	}
}

// TestShardAhead: what a shard has of a commit that was cut off before the run file had it is not read, and
// the next commits replace it.
func TestShardAhead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	entries := journaltest.Run(3, 400)
	s := mustOpenSharded(t, path, Create, 3)
	mustAppend(t, s, entries[:200]...)
	file, log := readFile(t, path), readFile(t, path+"-wal")
	mustAppend(t, s, entries[200:300]...)
	closed(t, s)
	writeFile(t, path, file)
	writeFile(t, path+"-wal", log)
	reread(t, path, entries[:200])
	s = mustOpen(t, path, Resume)
	journaltest.Same(t, s, entries[:200])
	mustAppend(t, s, entries[200:]...)
	closed(t, s)
	reread(t, path, entries)
}

// TestShardFails: if a shard cannot commit, nothing of the Append is there, whatever others committed.
func TestShardFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	s := mustOpenSharded(t, path, Create, 3)
	entries := []journal.Entry{staged(0, 6)}
	mustAppend(t, s, entries...)
	turn := func(episode int, data string) *journal.Turned {
		return &journal.Turned{Turn: journal.Turn{Episode: episode}, Calls: 1, Notes: []world.Note{{Kind: "n", Data: json.RawMessage(data)}}}
	}
	for round := range 3 {
		if err := s.Append(t.Context(), turn(0, "1"), turn(1, "{"), turn(2, "1"), ended(5)); err == nil {
			t.Fatal("a note that is not JSON was stored")
		}
		if n := rows(t, shardFile(path, 1), "turns"); n == round {
			t.Error("no other shard committed: the test tests nothing")
		}
		reread(t, path, entries)
		more := []journal.Entry{turn(round, "2"), turn(round+3, "3")}
		mustAppend(t, s, more...)
		entries = append(entries, more...)
		reread(t, path, entries)
	}
}

// rows counts the rows of a table, as any SQLite tool does.
func rows(t *testing.T, path, table string) (n int) {
	t.Helper()
	c, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	count, err := queryNumber(c, `SELECT count(*) FROM `+table)
	if err != nil {
		t.Fatal(err)
	}
	return int(count)
}
