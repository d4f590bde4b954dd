package runfile

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

func itoa(n int) string { return strconv.Itoa(n) }

// query reads a file as any SQLite tool does.
func query(t *testing.T, s *Store, text string) (rows [][]string) {
	t.Helper()
	c, err := sqlite.OpenConn(s.Path(), sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stmt, _, err := c.PrepareTransient(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer stmt.Finalize()
	for {
		found, err := stmt.Step()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !found {
			return rows
		}
		var row []string
		for i := range stmt.ColumnCount() {
			row = append(row, stmt.ColumnText(i))
		}
		rows = append(rows, row)
	}
}

// TestDocument runs every query in docs/reference/run-file.md, and checks that every column of every
// view is described there.
func TestDocument(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "run-file.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, filepath.Join(t.TempDir(), "run.db"), Create)
	mustAppend(t, s, &journal.Begun{Version: 1, Run: "doc"}, &journal.Opened{}, staged(0, 10))
	play(8, 8, 3, func(batch []journal.Entry) { mustAppend(t, s, batch...) })
	mustAppend(t, s, &journal.Batched{Step: journal.BatchIntended, Key: "k", Provider: "lab", Model: "lab/any", Lines: []string{"a"}},
		&journal.Batched{Step: journal.BatchCreated, Key: "k", Batch: "batch_1"})
	e := talk(8, 0) // one that is being played
	mustAppend(t, s, e[0], e[1], &journal.Turned{Turn: journal.Turn{Episode: 8, Turn: 1}, Notes: note("secret")})

	queries := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(doc), -1)
	if len(queries) < 8 {
		t.Errorf("only %d queries", len(queries))
	}
	for _, q := range queries {
		if rows := query(t, s, q[1]); len(rows) == 0 {
			t.Errorf("no row:\n%s", q[1])
		}
	}
	for _, row := range query(t, s, `SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'view'`) {
		view, column := row[0], row[1]
		section := regexp.MustCompile("(?s)\n### `" + view + "`\n(.*?)(\n##|$)").FindString(string(doc))
		if !strings.Contains(section, "`"+column+"`") {
			t.Errorf("docs/reference/run-file.md does not describe column %s of view %s", column, view)
		}
	}
}

// TestViews: the views show what was recorded.
func TestViews(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, filepath.Join(t.TempDir(), "run.db"), Create)
	mustAppend(t, s, &journal.Begun{Version: 1}, &journal.Opened{}, staged(0, 4))
	play(2, 2, 3, func(batch []journal.Entry) { mustAppend(t, s, batch...) })
	e := talk(2, 0)
	mustAppend(t, s, e[:]...)
	raised := journal.Turn{Episode: 2, Turn: 1}
	mustAppend(t, s, &journal.Turned{Turn: raised, Calls: 1}, &journal.Replied{
		Turn: raised, Act: &world.Act{Name: "do"}, Error: &llm.Error{Kind: llm.KindRaised, Message: "w.py:3: ValueError: no"}, At: time.Unix(1_800_000_000, 0),
	})
	for text, want := range map[string]string{
		`SELECT group_concat(state, ' ') FROM (SELECT state FROM episodes ORDER BY episode)`: "ended ended playing waiting",
		`SELECT count(*) FROM calls`:                                                                            "26",
		`SELECT count(*) FROM calls WHERE json_valid(json) = 0`:                                                 "0",
		`SELECT message FROM calls WHERE kind = 'act' AND json = '"' || message || '"'`:                         "w.py:3: ValueError: no",
		`SELECT count(*) FROM messages WHERE episode = 0 AND turn = 5`:                                          "6",
		`SELECT group_concat(role, ' ') FROM (SELECT role FROM messages WHERE episode=0 AND turn=3 ORDER BY n)`: "system user assistant user",
		`SELECT agent || ' ' || value FROM scores WHERE episode = 1 AND seat = 'host'`:                          "small 1.0",
		`SELECT calls || ' ' || input_tokens || ' ' || round(dollars, 6) FROM costs`:                            "25 17500 0.003086",
		`SELECT at || ' ' || seconds || ' ' || kind FROM calls LIMIT 1`:                                         "2027-01-15T08:00:00.000Z 0.8 ask",
		`SELECT count(*) FROM episodes WHERE stage = 0 AND json_extract(params, '$.messages') = 6`:              "4",
	} {
		rows := query(t, s, text)
		if len(rows) != 1 || rows[0][0] != want {
			t.Errorf("%s\ngives %v, want %s", text, rows, want)
		}
	}
}
