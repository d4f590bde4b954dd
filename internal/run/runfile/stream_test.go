package runfile

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestBrief: Brief gives the entries of Read without texts.
func TestBrief(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "run.db"), Create)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at := time.Unix(1_800_000_000, 0).UTC()
	entries := []journal.Entry{&journal.Begun{Version: 1, Run: "r", Kind: "secrets", At: at}, &journal.Opened{At: at}, staged(0, 3)}
	for episode := range 3 {
		for i := range talkCalls {
			e := talk(episode, i)
			entries = append(entries, e[0], e[1])
		}
		entries = append(entries, ended(episode), &journal.Exposed{Worst: llm.Money(episode)})
	}
	failed := talk(0, 0)[1].(*journal.Replied)
	failed.Response = nil
	failed.Error = &llm.Error{Kind: llm.KindTimeout, Message: "too slow", Status: 504, Usage: llm.Usage{Input: 3}, Metadata: llm.Metadata{Attempts: 4, Cost: 7}}
	bot := &journal.Replied{Seat: "host", Label: "message", Agent: "bot", At: at, Response: &llm.Response{Text: "hi"}, Copied: true}
	act := &journal.Replied{Seat: "host", Label: "step", At: at, Act: &world.Act{Name: "step", Body: json.RawMessage(`1`)}, Response: &llm.Response{JSON: json.RawMessage(`2`)}}
	entries = append(entries, failed, bot, act, &journal.Closed{At: at, State: journal.Complete})
	if err := s.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	var got, want []any
	err = errors.Join(
		s.Brief(t.Context(), func(e journal.Entry) error { got = append(got, account(e)); return nil }),
		s.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
			if a := account(e); a != nil {
				want = append(want, a)
			}
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	if len(want) < 3*talkCalls+6 {
		t.Fatalf("only %d entries", len(want))
	}
	for i := range want {
		if i >= len(got) || !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("entry %d:\n%+v\nwant\n%+v", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
}

// account returns what Brief gives of an entry, or nil if it leaves it out.
func account(e journal.Entry) any {
	switch e := e.(type) {
	case *journal.Staged, *journal.Turned, *journal.Ended:
		return nil
	case *journal.Replied:
		c := *e
		c.Strand, c.Turn.Turn, c.Index = "", 0, 0
		if c.Request != nil {
			c.Request = &llm.Request{Model: c.Request.Model}
		}
		if c.Act != nil {
			c.Act = &world.Act{}
		}
		if c.Response != nil {
			r := c.Response
			c.Response = &llm.Response{Finish: r.Finish, Model: r.Model, Provider: r.Provider, Tier: r.Tier, Usage: r.Usage, Metadata: r.Metadata}
		}
		c.At = c.At.UTC()
		return c
	default:
		return e
	}
}

func TestBriefStops(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "run.db"), Create)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := talk(0, 0)
	if err := s.Append(t.Context(), &journal.Begun{Version: 1}, staged(0, 1), e[0], e[1]); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	n := 0
	if err := s.Brief(t.Context(), func(journal.Entry) error { n++; return enough }); !errors.Is(err, enough) || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Brief(gone, func(journal.Entry) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestCount: questions, acts and answers of bots are counted apart, as a journal in memory counts them.
func TestCount(t *testing.T) {
	t.Parallel()
	entries := mixed(60, 1)
	turn := journal.Turn{Episode: 0, Attempt: 7}
	yes, ask := &llm.Response{Text: "yes"}, &llm.Request{Model: "lab/a"}
	paid := func(meta llm.Metadata) *llm.Response {
		return &llm.Response{Text: "yes", Usage: llm.Usage{Input: 5, Output: 2}, Metadata: meta}
	}
	entries = append(entries, &journal.Turned{Turn: turn, Calls: 9},
		&journal.Replied{Turn: turn, Act: &world.Act{Name: "step"}, Response: yes},
		&journal.Replied{Turn: turn, Index: 1, Act: &world.Act{Name: "step"}, Error: &llm.Error{Kind: llm.KindServer}},
		&journal.Replied{Turn: turn, Index: 2, Seat: "a", Response: yes},
		&journal.Replied{Turn: turn, Index: 3, Request: ask, Response: paid(llm.Metadata{Cost: 7})},
		&journal.Replied{Turn: turn, Index: 4, Request: ask, Response: paid(llm.Metadata{Cost: -7})},
		&journal.Replied{Turn: turn, Index: 5, Request: ask, Response: paid(llm.Metadata{Cost: 7}), Copied: true},
		&journal.Replied{Turn: turn, Index: 6, Request: ask, Response: paid(llm.Metadata{Cached: true})},
		&journal.Replied{Turn: turn, Index: 7, Request: ask, Response: paid(llm.Metadata{Coalesced: true})},
		&journal.Replied{Turn: turn, Index: 8, Request: ask, Error: &llm.Error{Kind: llm.KindServer, Usage: llm.Usage{Input: 3}, Metadata: llm.Metadata{Cost: 1}}},
		&journal.Replied{Turn: turn, Index: 9, Request: &llm.Request{Model: world.ProgramProvider + "/p"}, Response: yes})
	memory := &journal.Memory{}
	if err := memory.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	want, err := journal.Count(t.Context(), memory)
	if err != nil || want.Calls == 0 || want.Acts != 2 || want.FailedActs != 1 || want.Bots != 1 || want.Programs != 1 || want.Usage != (llm.Usage{Input: 13, Output: 4}) {
		t.Fatal(want, err)
	}
	s := kept(t, entries)
	if got, err := journal.Count(t.Context(), s); err != nil || got != want {
		t.Errorf("%+v, want %+v, %v", got, want, err)
	}
	huge := []journal.Entry{}
	for i := range 2 {
		huge = append(huge, &journal.Replied{Turn: turn, Index: 10 + i, Request: ask, Response: &llm.Response{Usage: llm.Usage{Input: math.MaxInt}}})
	}
	if err := errors.Join(s.Append(t.Context(), huge...), memory.Append(t.Context(), huge...)); err != nil {
		t.Fatal(err)
	}
	if want, err = journal.Count(t.Context(), memory); err != nil || want.Usage.Input != math.MaxInt {
		t.Fatal(want, err)
	}
	if got, err := journal.Count(t.Context(), s); err != nil || got != want {
		t.Errorf("more tokens than there are numbers: %+v, want %+v, %v", got, want, err)
	}
	s.readers.leaveOut(&Losses{})
	if got, err := journal.Count(t.Context(), s); err != nil || got != want {
		t.Errorf("without what is damaged: %+v, want %+v, %v", got, want, err)
	}
}
