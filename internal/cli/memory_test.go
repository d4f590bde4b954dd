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

	"parley/internal/answer"
	"parley/llm"
)

// endless writes request lines until it has written n.
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

// TestMemoryStaysFlat asks many requests with long prompts and answers and wants
// nothing of them left in memory but some bytes of bookkeeping each.
func TestMemoryStaysFlat(t *testing.T) {
	n := 30_000
	if testing.Short() {
		n = 5_000
	}
	ids := newPlacer()
	out, err := openOut(filepath.Join(t.TempDir(), "out.jsonl"), ids)
	if err != nil {
		t.Fatal(err)
	}
	for name, sink := range map[string]sink{"file": out, "stream": newOrdered(io.Discard, window)} {
		before := heap()
		m := &many{
			source: &jsonl{name: "in", lines: newLineReader(&endless{n: n}, maxLine), defs: defaults{
				req: llm.Request{Model: "sim/small"}, schemas: &answer.Compiler{},
			}},
			sink: sink, samples: 1, ids: ids, gate: newGate(), tally: &tally{},
		}
		m.run(t.Context(), &instant{fake: fake{drained: make(chan struct{})}})
		used := heap() - before
		if got := m.tally.now().Answered; got != n {
			t.Fatal(name, "answered", got)
		}
		const perRequest, fixed = 64, 1 << 20
		if most := int64(n*perRequest + fixed); used > most {
			t.Errorf("%s: %d bytes are left of %d requests, at most %d", name, used, n, most)
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
