package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"parley/internal/ask/answer"
	"parley/internal/cli/bulk"
	"parley/internal/cli/exit"
	"parley/internal/kit/files"
	"parley/llm"
)

// endless returns n request lines.
type endless struct {
	n, at int
	buf   bytes.Buffer
}

func (e *endless) Read(p []byte) (int, error) {
	for e.buf.Len() < len(p) && e.at < e.n {
		fmt.Fprintf(&e.buf, `{"id":"r%d","prompt":"%s"}`+"\n", e.at, strings.Repeat("why? ", 200))
		e.at++
	}
	return e.buf.Read(p)
}

// instant answers every request at once, one at a time.
type instant struct{ fake }

func (*instant) Each(_ context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) int {
	i := 0
	for range reqs {
		done(i, llm.Result{Response: said(strings.Repeat("because ", 100))})
		i++
	}
	return i
}

// TestMemoryStaysFlat asks many requests with long prompts and answers, and checks that only a few bytes per
// request stay in memory.
func TestMemoryStaysFlat(t *testing.T) {
	n := 30_000
	if testing.Short() {
		n = 5_000
	}
	ids := bulk.NewKeyer()
	out, err := bulk.OpenOut(t.Context(), filepath.Join(t.TempDir(), "out.jsonl"), ids)
	if err != nil {
		t.Fatal(err)
	}
	for name, sink := range map[string]bulk.Sink{"file": out, "stream": bulk.NewOrdered(io.Discard, bulk.Window)} {
		before := heap()
		m := &bulk.Asking{
			Source: &bulk.File{Name: "in", Lines: files.NewLineReader(&endless{n: n}, bulk.MaxLine), Defs: bulk.Defaults{
				Req: llm.Request{Model: "sim/small"}, Schemas: &answer.Compiler{},
			}},
			Sink: sink, Samples: 1, Keys: ids, Gate: exit.NewGate(), Tally: &bulk.Tally{},
		}
		m.Run(t.Context(), &instant{fake: fake{drained: make(chan struct{})}})
		used := heap() - before
		if got := m.Tally.Now().Answered; got != n {
			t.Fatal(name, "answered", got)
		}
		const perRequest, fixed = 64, 1 << 20
		if limit := int64(n*perRequest + fixed); used > limit {
			t.Errorf("%s: %d bytes are left of %d requests, at most %d", name, used, n, limit)
		}
		runtime.KeepAlive(m)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
