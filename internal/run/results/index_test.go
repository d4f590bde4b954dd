package results

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	db "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// record returns a run file of n episodes of which every seventh fails and every fifth is still played. add
// appends an episode.
func record(t *testing.T, n int) (store *runfile.Store, add func(episode int)) {
	t.Helper()
	store, err := runfile.Open(t.Context(), filepath.Join(t.TempDir(), "run.parley"), runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	write := func(entries ...journal.Entry) {
		t.Helper()
		if err := store.Append(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
	}
	even := world.Spec{Kind: "duel", Cell: "even", Lineup: map[string]string{"first": "small", "second": "large"}}
	odd := world.Spec{Kind: "duel", Cell: "odd", Lineup: map[string]string{"first": "large", "second": "smaller"}}
	write(&journal.Begun{Version: journal.Version, Run: "r1", Kind: "duel", KindVersion: 1}, &journal.Opened{},
		&journal.Staged{Specs: world.List(even, odd)}, &journal.Staged{Stage: 1, First: 2, Specs: world.Repeat(even, max(n, 50))})
	add = func(i int) {
		at := time.Unix(1_000_000, int64(i))
		turn := journal.Turn{Episode: i}
		write(&journal.Turned{Turn: turn, Calls: 2, Notes: []world.Note{{Kind: "secret", Seat: "first", Data: []byte(fmt.Sprintf(`"note%d"`, i))}}})
		for k := range 2 {
			r := &journal.Replied{
				Turn: turn, Index: k, Seat: "first", Agent: "small", Label: "say", At: at.Add(time.Duration((i*31)%17) * time.Second * time.Duration(k)),
				Request:  &llm.Request{Model: "sim/small", Messages: []llm.Message{llm.User("old question"), {Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "old"}}}, llm.User(fmt.Sprintf("question%d", i))}},
				Response: &llm.Response{Text: fmt.Sprintf("answer%d café <b>", i), Usage: llm.Usage{Input: i % 13, Output: 1}, Metadata: llm.Metadata{Cost: llm.Money(i * 7 % 11)}},
			}
			if k == 1 && i%7 == 0 {
				r.Response, r.Error = nil, &llm.Error{Kind: llm.KindServer, Message: "down"}
			}
			write(r)
		}
		switch {
		case i%7 == 0:
			write(&journal.Ended{Episode: i, At: at.Add(time.Minute), Outcome: world.Outcome{Failed: "server down"}})
		case i%5 != 0:
			write(&journal.Ended{Episode: i, At: at.Add(time.Minute), Outcome: world.Outcome{Scores: []world.Score{
				{Seat: "second", Name: "points", Value: float64(i%4) / 3}, {Name: "won", Value: math.NaN()}, {Name: "both", Value: -float64(i)},
			}}})
		}
	}
	for i := range n {
		add(i)
	}
	return store, add
}

func update(t *testing.T, x *Index) {
	t.Helper()
	if _, err := x.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, store *runfile.Store, run string) *Index {
	t.Helper()
	x, err := OpenIndex(t.Context(), store, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

func numbers(rows []Row) (out []int) {
	for _, r := range rows {
		out = append(out, r.Number)
	}
	return out
}

// TestByScore sorts by scores that are equal, missing, or not numbers.
func TestByScore(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 40)
	x := open(t, store, "r1")
	update(t, x)
	names, err := x.Scores()
	if err != nil || fmt.Sprint(names) != "[{points second 0} {both  2}]" {
		t.Errorf("%v %v", names, err)
	}
	got := pages(t, x, Query{Sort: "score", Score: "points", Seat: "second", Desc: true, Limit: 3})
	want := 0
	for i := range 40 {
		if i%7 != 0 && i%5 != 0 {
			want++
		}
	}
	if len(got) != want {
		t.Errorf("%d episodes, want %d", len(got), want)
	}
	if !slices.IsSortedFunc(got, func(a, b Row) int {
		return cmp.Or(-cmp.Compare(a.Scores[0].Value, b.Scores[0].Value), -cmp.Compare(a.Number, b.Number))
	}) {
		t.Error(numbers(got))
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 40)
	x := open(t, store, "r1")
	update(t, x)
	for _, c := range []struct {
		name string
		q    Query
		want string
	}{
		{"failed", Query{State: runfile.Failed}, "[0 7 14 21 28 35]"},
		{"playing", Query{State: runfile.Playing}, "[5 10 15 20 25 30]"},
		{"cell", Query{Cell: "dd"}, "[1]"},
		{"agent by its whole name", Query{Agent: "small", State: runfile.Failed}, "[0 7 14 21 28 35]"},
		{"agent that begins like another", Query{Agent: "smaller"}, "[1]"},
		{"reason", Query{Text: "r down", Desc: true}, "[35 28 21 14 7 0]"},
		{"hostile", Query{Cell: `' OR 1=1 --`}, "[]"},
	} {
		c.q.Limit = 100
		if got := fmt.Sprint(numbers(pages(t, x, c.q))); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestReasons counts why episodes failed. The page of a run asks for it: it reads the failed episodes, not the million others.
func TestReasons(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 40)
	x := open(t, store, "r1")
	update(t, x)
	if err := x.exec(`UPDATE episodes SET failed = 'out of time' WHERE episode IN (7, 14)`); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int]string{5: "[{server down 4} {out of time 2}]", 1: "[{server down 4}]"} {
		if got, err := x.Reasons(t.Context(), limit); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%v, %v, want %s", got, err, want)
		}
	}
	plan := ""
	if err := x.query(`EXPLAIN QUERY PLAN `+reasonsSQL, []any{5}, func(s *db.Stmt) { plan += s.ColumnText(3) + "; " }); err != nil || !strings.Contains(plan, "episodes_of_failure") {
		t.Errorf("it does not use its index: %s %v", plan, err)
	}
}

// TestFollows checks that an index that follows a run equals one that is made at once, even if it was closed
// meanwhile.
func TestFollows(t *testing.T) {
	t.Parallel()
	store, add := record(t, 3)
	x := open(t, store, "r1")
	for i := 3; i < 30; i++ {
		add(i)
		update(t, x)
		if i == 20 {
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			x = open(t, store, "r1")
		}
	}
	// An attempt that follows a failed one replaces its scores and state.
	turn := journal.Turn{Episode: 8, Attempt: 1}
	err := store.Append(t.Context(), &journal.Turned{Turn: turn, Calls: 2}, &journal.Replied{Turn: turn, Request: &llm.Request{Model: "lab/a"}, Response: &llm.Response{}},
		&journal.Replied{Turn: turn, Index: 1, Act: &world.Act{}, Response: &llm.Response{}},
		&journal.Ended{Episode: 8, Attempt: 1, At: time.Unix(2_000_000, 0), Outcome: world.Outcome{Scores: []world.Score{{Name: "both", Value: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	update(t, x)
	got := pages(t, x, Query{Limit: 100})
	if err := os.Remove(store.Path() + IndexSuffix); err != nil {
		t.Fatal(err)
	}
	fresh := open(t, store, "r1")
	update(t, fresh)
	for i, want := range pages(t, fresh, Query{Limit: 100}) {
		if fmt.Sprint(got[i]) != fmt.Sprint(want) {
			t.Errorf("followed\n%v\nmade at once\n%v", got[i], want)
		}
	}
	if got[8].State != runfile.Ended || len(got[8].Scores) != 1 || got[8].Calls != 3 {
		t.Errorf("%+v", got[8])
	}
	if got[7].Errors != 1 || got[7].Calls != 2 || got[7].Took != time.Minute {
		t.Errorf("%+v", got[7])
	}
}

// TestSearchFull: an index whose texts are as large as they may get takes no more, says so, and does not wait for the others.
func TestSearchFull(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 8)
	x := open(t, store, "r1")
	x.limit = func() int64 { return 20 }
	for range 2 {
		if n, err := x.UpdateTexts(t.Context(), 1<<20); err != nil || n == 0 || !x.Full() || x.meta.bytes > 1000 {
			t.Errorf("%d entries, %d bytes, full: %v, %v", n, x.meta.bytes, x.Full(), err)
		}
	}
	x.limit = func() int64 { return 1 << 30 }
	if n, err := x.UpdateTexts(t.Context(), 1<<20); err != nil || x.Full() {
		t.Errorf("with more room: %d entries, %v", n, err)
	}
}

// TestSearch finds words in answers, notes and new messages, and takes operators of FTS5 as words.
func TestSearch(t *testing.T) {
	t.Parallel()
	store, add := record(t, 8)
	x := open(t, store, "r1")
	for {
		was := x.meta.texts
		n, err := x.UpdateTexts(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		if n == was {
			break
		}
	}
	find := func(words string) (out []string) {
		t.Helper()
		for after := 0; ; {
			hits, err := x.Search(t.Context(), words, after, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hits {
				out = append(out, strconv.Itoa(h.Episode)+" "+h.What+" "+h.Call+" "+h.Seat)
				after = h.ID
			}
			if len(hits) < 3 {
				return out
			}
		}
	}
	for words, want := range map[string]string{
		"answer3":            "[3 answer 0:0 first 3 answer 0:1 first]",
		"ANSWER3 cafe":       "[3 answer 0:0 first 3 answer 0:1 first]",
		"answer3 cafx":       "[]",
		"answer7":            "[7 answer 0:0 first]",
		"note4":              "[4 note 0 first]",
		"question5":          "[5 asked 0:0 first 5 asked 0:1 first]",
		"old":                "[]", // it was in an earlier request
		`"`:                  "[]",
		"answer3 OR answer4": "[]",
		"text:answer3":       "[]",
		"  ":                 "[]",
		"answer3\x00\xff":    "[3 answer 0:0 first 3 answer 0:1 first]",
	} {
		if got := fmt.Sprint(find(words)); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
	if got := find("answ"); len(got) != 14 {
		t.Errorf("the beginning of a word: %v", got)
	}
	add(8)
	if _, err := x.UpdateTexts(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	if got := find("answer8"); len(got) != 2 {
		t.Errorf("what was added: %v", got)
	}
}

// TestLabels filters and sorts by labels, and replaces them.
func TestLabels(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 20)
	x := open(t, store, "r1")
	update(t, x)
	for range 2 {
		if err := x.SetLabels(map[int]map[string]float64{3: {"any": 2, "verdict": 0.5}, 8: {"any": 1, "verdict": 1}, 9: {"any": 1}, 999: {"any": 1}}); err != nil {
			t.Fatal(err)
		}
	}
	for want, q := range map[string]Query{
		"[3 8 9]": {Label: "any", Limit: 2},
		"[3]":     {Label: "any", State: runfile.Ended, Cell: "even", Desc: true, Agent: "large", Limit: 1, Sort: "label", Score: "verdict", After: &IndexKey{Value: "1", Episode: 8}},
		"[8 3]":   {Sort: "label", Score: "verdict", Desc: true, Limit: 1},
		"[9 8 3]": {Label: "any", Sort: "episode", Desc: true, Limit: 5},
		"[]":      {Label: "none", Limit: 5},
	} {
		if got := fmt.Sprint(numbers(pages(t, x, q))); got != want {
			t.Errorf("%+v: %s, want %s", q, got, want)
		}
	}
	for _, row := range pages(t, x, Query{Limit: 100}) {
		same, err := x.SameDeal(t.Context(), row.Deal, row.Number, 100)
		if err != nil || slices.ContainsFunc(same, func(r Row) bool { return r.Number == row.Number }) {
			t.Errorf("%d: %v %v", row.Number, numbers(same), err)
		}
	}
}

// TestMakeIndexes checks that a column that was sorted by gets an index, and that pages stay the same.
func TestMakeIndexes(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 30)
	for name, path := range map[string]string{"in a file": store.Path() + IndexSuffix, "in memory": inMemory} {
		x := open(t, store, "r1")
		if path == inMemory {
			if err := errors.Join(x.Close(), x.open(t.Context(), inMemory, "r1")); err != nil {
				t.Fatal(err)
			}
		}
		update(t, x)
		before := pages(t, x, Query{Sort: "cost", Limit: 7})
		if err := x.MakeIndexes(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := pages(t, x, Query{Sort: "cost", Limit: 7})
		tables, err := tablesOf(x.conn)
		if err != nil || tables["episodes_cost"] == "" || tables["episodes_took"] != "" || !slices.Equal(numbers(before), numbers(after)) || x.path != path {
			t.Errorf("%s: %v %v %v %v", name, tables, numbers(before), numbers(after), err)
		}
	}
}

// TestCancelled checks that a query ends with its context.
func TestCancelled(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 5)
	x := open(t, store, "r1")
	update(t, x)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Page(ctx, Query{Limit: 10}); err == nil {
		t.Error("a query runs without a reader")
	}
	if got := pages(t, x, Query{Limit: 10}); len(got) != 5 {
		t.Error("the next one does not")
	}
}

// TestClosed checks that late queries fail: a page may still be read when its run is closed.
func TestClosed(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 5)
	x := open(t, store, "r1")
	update(t, x)
	if err := errors.Join(x.Close(), x.Close()); err != nil {
		t.Fatal(err)
	}
	_, updating := x.Update(t.Context())
	_, paging := x.Page(t.Context(), Query{Limit: 10})
	_, searching := x.Search(t.Context(), "hello", 0, 10)
	for i, err := range []error{updating, paging, searching} {
		if err == nil {
			t.Error("no error:", i)
		}
	}
}

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
			path := store.Path() + IndexSuffix
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
	if err := os.MkdirAll(store.Path()+IndexSuffix, 0o700); err != nil {
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

// pages lists everything in pages of limit rows.
func pages(t *testing.T, x *Index, q Query) (all []Row) {
	t.Helper()
	for {
		rows, err := x.Page(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rows...)
		if len(rows) < q.Limit {
			return all
		}
		q.After = &rows[len(rows)-1].Key
	}
}

// TestPages checks that pages in any order and size have every episode once, in that order.
func TestPages(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 60)
	x := open(t, store, "r1")
	update(t, x)
	whole := pages(t, x, Query{Limit: 1000})
	if len(whole) != 60 {
		t.Fatalf("%d episodes, want 60", len(whole))
	}
	value := func(r Row, sort string) float64 {
		return map[string]float64{"episode": float64(r.Number), "calls": float64(r.Calls), "errors": float64(r.Errors), "tokens": float64(r.Tokens), "cost": float64(r.Cost), "began": float64(r.Began.UnixNano()), "took": float64(r.Took)}[sort]
	}
	for _, sort := range SortColumns() {
		for _, desc := range []bool{false, true} {
			want := slices.Clone(whole)
			slices.SortFunc(want, func(a, b Row) int {
				text := 0
				switch sort {
				case "state":
					text = cmp.Compare(a.State, b.State)
				case "cell":
					text = cmp.Compare(a.Cell, b.Cell)
				case "lineup":
					text = cmp.Compare(a.Lineup, b.Lineup)
				}
				order := cmp.Or(text, cmp.Compare(value(a, sort), value(b, sort)), cmp.Compare(a.Number, b.Number))
				if desc {
					return -order
				}
				return order
			})
			for _, limit := range []int{1, 7, 60} {
				got := pages(t, x, Query{Sort: sort, Desc: desc, Limit: limit})
				if !slices.EqualFunc(got, want, func(a, b Row) bool { return a.Number == b.Number }) {
					t.Errorf("by %s, desc %v, %d a page: %v", sort, desc, limit, numbers(got))
				}
			}
		}
	}
	if _, err := x.Page(t.Context(), Query{Sort: "cost; DROP TABLE meta", Limit: 1}); err == nil {
		t.Error("any text is a column")
	}
	if _, err := x.Page(t.Context(), Query{Sort: "cost", Limit: 1, After: &IndexKey{Value: "x"}}); err == nil {
		t.Error("any text is a position")
	}
	if _, err := x.Page(t.Context(), Query{Tests: []Test{{Column: "calls; DROP TABLE meta", Op: "<"}}, Limit: 1}); err == nil {
		t.Error("any text is a column to limit")
	}
}

// TestFiltered checks that a filter leaves out rows and nothing else, in any order, with and without indexes.
func TestFiltered(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 60)
	x := open(t, store, "r1")
	update(t, x)
	if err := x.SetLabels(map[int]map[string]float64{3: {"any": 1}, 9: {"any": 2}, 11: {"any": 2}, 50: {"any": 1}}); err != nil {
		t.Fatal(err)
	}
	whole := pages(t, x, Query{Limit: 1000})
	var orders []Query
	for _, column := range SortColumns() {
		orders = append(orders, Query{Sort: column})
	}
	orders = append(orders, Query{Sort: "score", Score: "points", Seat: "second"}, Query{Sort: "label", Score: "any"})
	filters := map[string]struct {
		query Query
		keeps func(Row) bool
	}{
		"state":   {Query{State: whole[1].State}, func(r Row) bool { return r.State == whole[1].State }},
		"cell":    {Query{Cell: whole[2].Cell}, func(r Row) bool { return strings.Contains(r.Cell, whole[2].Cell) }},
		"agent":   {Query{Agent: "small"}, func(r Row) bool { return strings.Contains(r.Lineup+" ", "=small ") }},
		"label":   {Query{Label: "any"}, func(r Row) bool { return slices.Contains([]int{3, 9, 11, 50}, r.Number) }},
		"cost":    {Query{Tests: []Test{{Column: CostColumn, Op: ">=", Value: int64(5)}, {Column: CostColumn, Op: "<=", Value: int64(12)}}}, func(r Row) bool { return r.Cost >= 5 && r.Cost <= 12 }},
		"took":    {Query{Tests: []Test{{Column: TookColumn, Op: ">=", Value: int64(time.Minute)}, {Column: CostColumn, Op: ">", Value: int64(0)}}}, func(r Row) bool { return r.Took >= time.Minute && r.Cost > 0 }},
		"nothing": {Query{State: "none", Text: "nothing"}, func(Row) bool { return false }},
	}
	for _, made := range []bool{false, true} {
		for _, order := range orders {
			for _, order.Desc = range []bool{false, true} {
				order.Limit = 1000
				all := pages(t, x, order)
				for name, f := range filters {
					q := order
					q.State, q.Cell, q.Agent, q.Label, q.Text, q.Tests, q.Limit = f.query.State, f.query.Cell, f.query.Agent, f.query.Label, f.query.Text, f.query.Tests, 4
					want := slices.DeleteFunc(slices.Clone(all), func(r Row) bool { return !f.keeps(r) })
					if got := pages(t, x, q); !slices.Equal(numbers(got), numbers(want)) {
						t.Errorf("by %s, desc %v, only %s, indexes %v: %v, want %v", order.Sort, order.Desc, name, made, numbers(got), numbers(want))
					}
				}
			}
		}
		if err := x.MakeIndexes(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
