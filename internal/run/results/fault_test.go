package results

import (
	"strings"
	"testing"
	"unicode/utf8"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

func TestCommonest(t *testing.T) {
	t.Parallel()
	ended := func(n int, why string) journal.Entry {
		return &journal.Ended{Episode: n, Attempt: 1, Outcome: world.Outcome{Failed: why}}
	}
	replied := func(n, attempt int, kind llm.Kind, message string) journal.Entry {
		return &journal.Replied{Turn: journal.Turn{Episode: n, Attempt: attempt}, Error: &llm.Error{Kind: kind, Message: message}}
	}
	const refused, panicked = "environment: open: bad_request", "panic: oh"
	for name, tt := range map[string]struct {
		entries []journal.Entry
		want    Fault
	}{
		"none failed": {entries: []journal.Entry{ended(0, ""), ended(1, "")}},
		"what most failed of, as it was said to the first of them": {
			[]journal.Entry{
				ended(0, panicked), ended(1, ""), replied(2, 0, llm.KindBadRequest, "of another attempt"),
				replied(2, 1, llm.KindBadRequest, "no\nsuch  field"), replied(2, 1, llm.KindTimeout, "of another kind"), ended(2, refused),
				replied(3, 1, llm.KindBadRequest, "of another episode"), ended(3, refused),
			},
			Fault{Episodes: 2, Why: refused, Said: "no such field", Others: 1},
		},
		"numbers do not tell them apart": {
			[]journal.Entry{ended(0, panicked), ended(1, "budget: $0.02 is left"), ended(2, ""), ended(3, "budget: $0.03 is left, and more")},
			Fault{Episodes: 2, Why: "budget: $0.02 is left", Others: 1},
		},
		"lines of code tell them apart, and the words of an error do not": {
			[]journal.Entry{
				ended(0, "g.py:7: KeyError: 'x'"), ended(1, "g.py:9: ValueError: one 1"),
				&journal.Turned{Turn: journal.Turn{Episode: 1, Attempt: 1}, Notes: []world.Note{{Kind: "error", Data: []byte(`{"text":"g.py:9: ValueError: one 1","trace":"Traceback"}`)}}},
				ended(2, "g.py:9: ValueError: two"),
			},
			Fault{Episodes: 2, Why: "g.py:9: ValueError: one 1", Others: 1, Trace: "Traceback"},
		},
		"of two the first, and nobody said anything": {
			[]journal.Entry{replied(4, 1, llm.KindTimeout, "late"), ended(4, panicked), ended(5, refused)},
			Fault{Episodes: 1, Why: panicked, Others: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &journal.Memory{}
			entries := append([]journal.Entry{&journal.Begun{Version: 1}, &journal.Staged{Specs: world.List(make([]world.Spec, 6)...)}}, tt.entries...)
			if err := j.Append(t.Context(), entries...); err != nil {
				t.Fatal(err)
			}
			head, err := j.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, err := Commonest(t.Context(), j, head)
			if err != nil || (got == nil) != (tt.want == Fault{}) || got != nil && *got != tt.want {
				t.Errorf("%+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
	if long := oneLine(strings.Repeat("é ", 1000)); utf8.RuneCountInString(long) != 200 || strings.Contains((&Fault{Why: "w"}).String(), ":") {
		t.Errorf("%q", long)
	}
}

// TestPanickedAt: the line is in the kind's own code, even if a library of Go or the table panicked.
func TestPanickedAt(t *testing.T) {
	t.Parallel()
	var none map[string]int
	play := map[string]func(*world.Table){
		"index":   func(*world.Table) { _ = []int{}[len(t.Name())] },
		"nil map": func(*world.Table) { none[t.Name()] = 1 },
		"table":   func(t *world.Table) { t.Note("x", "", func() {}) },
	}
	for name, f := range play {
		turn := world.Begin(world.Func(func(t *world.Table) world.Outcome { f(t); return world.Outcome{} }), world.Deal{}).Next(nil)
		if got := panickedAt(turn.Stack); turn.Panic == "" || !strings.HasPrefix(got, "fault_test.go:") {
			t.Errorf("%s: %q in %s", name, got, turn.Stack)
		}
	}
	const stack = "goroutine 7 [running]:\nruntime/debug.Stack()\n\t/go/src/runtime/debug/stack.go:26 +0x5e\npanic({0x1, 0x2})\n\t/go/src/runtime/panic.go:783 +0x132\n" +
		"strings.Repeat()\n\t/go/src/strings/strings.go:1 +0x1\nmain.(*game).Play(0x1)\n\t/home/a b/game.go:57 +0x1d\n"
	for in, want := range map[string]string{
		stack: "game.go:57", "": "", "goroutine 1\n\tplay.go:7": "", "\npanic(": "", "\npanic(\n": "", stack[:len(stack)-36]: "",
	} {
		if got := panickedAt(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if f := (Fault{Why: "panic: oh", At: "game.go:57", Said: "no"}); f.String() != "panic: oh (game.go:57): no" {
		t.Error(f.String())
	}
}
