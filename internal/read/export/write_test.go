package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestDocumented: docs/how-to/export.md describes every column, in order, with its type.
func TestDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../../docs/how-to/export.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables() {
		want := "\n### `" + string(table) + "`\n"
		_, section, ok := strings.Cut(string(doc), want)
		if section, _, _ = strings.Cut(section, "\n#"); !ok {
			t.Errorf("docs/how-to/export.md has no section %s", table)
		}
		var rows strings.Builder
		rows.WriteString("| column | type | is |\n|---|---|---|\n")
		for i, c := range Columns(table) {
			if calls := Columns(Calls); table == Messages && c.Name == calls[min(i, len(calls)-1)].Name {
				continue // the page says that these are the same
			}
			fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", c.Name, c.Type, c.Doc)
		}
		if !strings.Contains(section, "\n"+rows.String()) {
			t.Errorf("docs/how-to/export.md, %s: want this table:\n%s", table, rows.String())
		}
	}
}

// TestEmpty: a run without episodes still has columns; a file without a run is an error.
func TestEmpty(t *testing.T) {
	t.Parallel()
	begun := recorded(t, exportSample()[0])
	none := recorded(t)
	for _, table := range tables() {
		if got := written(t, begun, table, JSONL); len(got) != 0 {
			t.Errorf("%s: %q", table, got)
		}
		if got, want := string(written(t, begun, table, CSV)), strings.Join(columnNames(table), ",")+"\n"; got != want {
			t.Errorf("%s: %q", table, got)
		}
		if got := written(t, begun, table, Parquet); !bytes.HasPrefix(got, []byte("PAR1")) || !bytes.HasSuffix(got, []byte("PAR1")) {
			t.Errorf("%s: %q", table, got)
		}
		if _, err := Write(t.Context(), io.Discard, []Run{{Store: none}}, table, JSONL, 0); err == nil || !strings.Contains(err.Error(), "holds no run yet") {
			t.Error(err)
		}
	}
	for _, bad := range []struct {
		table  Table
		format Format
	}{{"nothing", JSONL}, {Calls, "xml"}} {
		if _, err := Write(t.Context(), io.Discard, []Run{{Store: begun}}, bad.table, bad.format, 0); err == nil {
			t.Errorf("%v is written", bad)
		}
	}
}

// TestSameBytes: the same run gives the same file.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	s := recorded(t, exportSample()...)
	for _, table := range tables() {
		for _, f := range Formats() {
			if a, b := written(t, s, table, f), written(t, s, table, f); !bytes.Equal(a, b) || len(a) == 0 {
				t.Errorf("%s as %s: %d bytes and %d others", table, f, len(a), len(b))
			}
		}
	}
}

// TestWhilePlayed exports a run after every write.
func TestWhilePlayed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	w, err := runfile.Open(t.Context(), file, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	calls := 0
	for _, e := range exportSample() {
		if err := w.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if _, ok := e.(*journal.Replied); ok {
			calls++
		}
		for _, table := range tables() {
			rows := objects(t, written(t, r, table, JSONL))
			if table == Calls && len(rows) != calls {
				t.Errorf("%d rows, want %d", len(rows), calls)
			}
		}
	}
}

// brokenWriter fails after some bytes.
type brokenWriter struct{ left int }

var errBroken = errors.New("the disk is full")

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestFailures(t *testing.T) {
	t.Parallel()
	s := recorded(t, exportSample()...)
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errBroken)
	for _, table := range tables() {
		for _, f := range Formats() {
			for _, left := range []int{0, 10, 300} {
				if _, err := Write(t.Context(), &brokenWriter{left}, []Run{{Store: s}}, table, f, 0); !errors.Is(err, errBroken) {
					t.Errorf("%s as %s after %d bytes: %v", table, f, left, err)
				}
			}
			if _, err := Write(ended, io.Discard, []Run{{Store: s}}, table, f, 0); !errors.Is(err, errBroken) {
				t.Errorf("%s as %s: a context that ended: %v", table, f, err)
			}
		}
	}
}

// talk writes a run of concurrent conversations of twelve messages of 500 bytes each, and returns its
// file.
func talk(tb testing.TB, calls int) string {
	tb.Helper()
	const length, live = 12, 1000
	file := filepath.Join(tb.TempDir(), "talk.parley")
	w, err := runfile.Open(context.Background(), file, runfile.Create)
	if err != nil {
		tb.Fatal(err)
	}
	specs := make([]world.Spec, calls/length)
	for i := range specs {
		specs[i] = world.Spec{Kind: "talk", Lineup: map[string]string{"a": "x", "b": "x"}, Deal: i}
	}
	entries := []journal.Entry{&journal.Begun{Version: 1, Run: "talk", Kind: "talk"}, &journal.Opened{}, &journal.Staged{Specs: world.List(specs...)}}
	said := func(episode, i int) string {
		return strings.Repeat(fmt.Sprintf("Episode %d, message %d. ", episode, i), 25)[:500]
	}
	for first := 0; first < len(specs); first += live {
		for i := range length {
			for episode := first; episode < min(first+live, len(specs)); episode++ {
				at := journal.Turn{Episode: episode, Turn: i}
				q := &llm.Request{Model: "sim/small", Messages: []llm.Message{llm.System("Talk.")}}
				for k := range i {
					q.Messages = append(q.Messages, llm.User(said(episode, k)))
				}
				entries = append(entries, &journal.Turned{Turn: at, Calls: 1}, &journal.Replied{Turn: at, Seat: "a", Label: "message", Agent: "x", Request: q, Response: &llm.Response{Text: said(episode, i)}})
			}
			if err := w.Append(context.Background(), entries...); err != nil {
				tb.Fatal(err)
			}
			entries = entries[:0]
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return file
}

// gauge counts written bytes, and measures the memory in use now and then.
type gauge struct {
	written, next int
	collect       bool
	peak          uint64 // bytes in use
}

func (g *gauge) Write(p []byte) (int, error) {
	if g.written += len(p); g.written >= g.next {
		g.next = g.written + 4<<20
		if g.collect {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		g.peak = max(g.peak, m.HeapAlloc)
	}
	return len(p), nil
}

// TestFlatMemory: the output is several times as large as the memory in use. No other test runs beside
// it.
func TestFlatMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes a large file")
	}
	s, err := runfile.OpenRead(talk(t, 24_000))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	g := &gauge{collect: true}
	if _, err := Write(t.Context(), g, []Run{{Store: s}}, Messages, JSONL, 0); err != nil {
		t.Fatal(err)
	}
	peak := int(g.peak) - int(before.HeapAlloc)
	t.Logf("%d MB written with %d MB", g.written>>20, peak>>20)
	if peak > g.written/2 || g.written < 80<<20 {
		t.Errorf("%d MB are used to write %d MB", peak>>20, g.written>>20)
	}
}

// BenchmarkWrite exports a run of 60,000 calls, or the run file that PARLEY_BENCH_FILE
// names: that of go test ./internal/run/runfile -bench Open with PARLEY_BENCH_DIR has a
// million.
func BenchmarkWrite(b *testing.B) {
	file := os.Getenv("PARLEY_BENCH_FILE")
	if file == "" {
		file = talk(b, 60_000)
	}
	s, err := runfile.OpenRead(file)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for _, table := range tables() {
		for _, f := range Formats() {
			b.Run(fmt.Sprintf("%s/%s", table, f), func(b *testing.B) {
				rows, g := 0, &gauge{}
				for b.Loop() {
					n, err := Write(context.Background(), g, []Run{{Store: s}}, table, f, 0)
					if err != nil {
						b.Fatal(err)
					}
					rows += n
				}
				b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
				b.ReportMetric(float64(g.written)/1e6/b.Elapsed().Seconds(), "MB/s")
				b.ReportMetric(float64(g.peak)/1e6, "heap-MB")
			})
		}
	}
}

// TestChosenColumns: only the chosen columns are written, in the order of the table, with the values that they have among all.
func TestChosenColumns(t *testing.T) {
	t.Parallel()
	s := recorded(t, exportSample()...)
	for _, f := range Formats() {
		var b bytes.Buffer
		rows, err := Write(t.Context(), &b, []Run{{Store: s}}, Calls, f, 0, "text", "seat", "call")
		if err != nil || rows == 0 {
			t.Fatalf("%s: %d rows, %v", f, rows, err)
		}
		if f != JSONL {
			continue
		}
		all := objects(t, written(t, s, Calls, f))
		for i, got := range objects(t, b.Bytes()) {
			want := map[string]any{"call": all[i]["call"], "seat": all[i]["seat"], "text": all[i]["text"]}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("row %d: %v, want %v", i, got, want)
			}
		}
		if !strings.HasPrefix(b.String(), `{"call":`) {
			t.Errorf("the columns are not in the order of the table: %.80s", b.String())
		}
	}
	if _, err := Write(t.Context(), io.Discard, []Run{{Store: s}}, Calls, JSONL, 0, "nothing"); err == nil {
		t.Error("an unknown column is written")
	}
}
