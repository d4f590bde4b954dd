package runfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// mixed returns a run in which episodes wait, play, end, fail, begin again, and get replies after their
// end, in an order that depends on a seed.
func mixed(episodes int, seed uint64) []journal.Entry {
	r := rand.New(rand.NewPCG(seed, 1))
	specs := make([]world.Spec, episodes)
	for i := range specs {
		specs[i] = world.Spec{Kind: "k", Params: json.RawMessage(`{"n":1}`), Lineup: map[string]string{"a": "x"}, Deal: i, Cell: []string{"", "short", "long"}[i%3]}
	}
	half := episodes / 2
	cells := []world.Group{{Spec: specs[0], Size: 1}, {Spec: specs[1], Size: 2}, {Spec: specs[2], Size: 1}}
	blocks, err := world.Blocks(world.Block{Groups: cells, Rounds: half / 4})
	if err != nil {
		panic(err) // not reached
	}
	out := []journal.Entry{
		&journal.Begun{Version: 1, Run: "r", Kind: "k", Plan: json.RawMessage(`{}`)}, &journal.Opened{},
		&journal.Staged{Specs: world.Join(blocks, world.List(specs[:half%4]...))}, &journal.Staged{Stage: 1, First: half, Specs: world.List(specs[half:]...)},
	}
	attempt, over := make([]int, episodes), make([]bool, episodes)
	for range 20 * episodes {
		n := r.IntN(episodes)
		at := journal.Turn{Episode: n, Attempt: attempt[n]}
		reply := &journal.Replied{Turn: at, Seat: "a", Request: &llm.Request{Model: "m/" + fmt.Sprint(n%3), Messages: []llm.Message{llm.User("said"), llm.User(fmt.Sprint("it ", n))}}, Copied: r.IntN(4) == 0}
		if r.IntN(5) == 0 {
			reply.Error = &llm.Error{Kind: llm.KindTimeout, Metadata: llm.Metadata{Cost: 2}}
		} else {
			reply.Response = &llm.Response{Text: fmt.Sprint("answer ", n), Metadata: llm.Metadata{Cost: 3}}
		}
		switch do := r.IntN(12); {
		case n%5 == 4: // waits
		case over[n] && do == 0: // begins again
			attempt[n]++
			over[n] = false
			out = append(out, &journal.Turned{Turn: journal.Turn{Episode: n, Attempt: attempt[n]}, Calls: 1})
		case over[n] && do == 1: // a late reply
			out = append(out, reply)
		case over[n]:
		case do == 2:
			over[n] = true
			out = append(out, &journal.Ended{Episode: n, Attempt: attempt[n], Outcome: world.Outcome{Failed: []string{"", "bad luck"}[r.IntN(2)], Scores: []world.Score{{Name: "s", Value: r.Float64()}}, Data: json.RawMessage(`1`)}})
		default:
			out = append(out, &journal.Turned{Turn: at, Calls: 1}, reply)
		}
	}
	return out
}

func kept(t *testing.T, entries []journal.Entry) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "run.db"), Create)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestListIsHead: List, Outline and Spent agree with the whole journal.
func TestListIsHead(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		entries := mixed(60, seed)
		s := kept(t, entries)
		head, want := &journal.Head{}, map[int]*journal.Spending{}
		for _, e := range entries {
			head.Add(e)
			if r, ok := e.(*journal.Replied); ok {
				if want[r.Episode] == nil {
					want[r.Episode] = &journal.Spending{}
				}
				want[r.Episode].Add(r)
			}
		}
		list, err := s.List(t.Context(), Listing{})
		if err != nil || len(list) != 60 {
			t.Fatalf("%d: %d listed, %v", seed, len(list), err)
		}
		failed := 0
		for i := range list {
			checkListed(t, s, head, &list[i], want[i])
			if list[i].State() == Failed {
				failed++
			}
		}
		o, err := s.Outline(t.Context())
		if err != nil || o.Episodes != head.Episodes() || o.Episodes.Total != 60 || o.Episodes.Failed != failed || o.Batches != head.Accepted() ||
			o.Replies != head.Calls || o.Spent != head.Spent || !o.Open || !reflect.DeepEqual(o.Begun, head.Begun) {
			t.Errorf("%d: %+v, %v", seed, o, err)
		}
		checkChosen(t, s, list)
	}
}

// TestOutlineSteered: an outline says what holds the process that has the run open, and nothing that held an earlier one.
func TestOutlineSteered(t *testing.T) {
	t.Parallel()
	steer := func(verb journal.SteerVerb, by string) journal.Entry { return &journal.Steered{Verb: verb, By: by} }
	for name, c := range map[string]struct {
		steered                    []journal.Entry
		paused, draining, stopping bool
	}{
		"nothing":               {},
		"paused":                {steered: []journal.Entry{steer(journal.SteerPause, "first"), steer(journal.SteerPause, "cut"), steer(journal.SteerSet, "ctl")}, paused: true},
		"resumed":               {steered: []journal.Entry{steer(journal.SteerPause, "first"), steer(journal.SteerResume, "ctl")}},
		"paused and draining":   {steered: []journal.Entry{steer(journal.SteerDrain, "ctl"), steer(journal.SteerPause, "first")}, paused: true, draining: true},
		"stopping":              {steered: []journal.Entry{steer(journal.SteerStop, "ctl")}, stopping: true},
		"of the process before": {steered: []journal.Entry{steer(journal.SteerPause, "first"), steer(journal.SteerDrain, "ctl"), steer(journal.SteerStop, "ctl"), &journal.Opened{}}},
		"closed":                {steered: []journal.Entry{steer(journal.SteerPause, "first"), &journal.Closed{State: journal.Stopped}}},
	} {
		o, err := kept(t, append([]journal.Entry{&journal.Begun{Version: journal.Version}, &journal.Opened{}}, c.steered...)).Outline(t.Context())
		if err != nil || (o.Paused != nil) != c.paused || (o.Draining != nil) != c.draining || (o.Stopping != nil) != c.stopping || c.paused && o.Paused.By != "first" {
			t.Errorf("%s: %v %v %v, %v", name, o.Paused, o.Draining, o.Stopping, err)
		}
	}
}

func checkListed(t *testing.T, s *Store, head *journal.Head, l *Listed, want *journal.Spending) {
	t.Helper()
	stage := head.Stages[l.Stage]
	if !reflect.DeepEqual(l.Spec, stage.Specs.At(l.Episode-stage.First)) {
		t.Errorf("episode %d: %+v", l.Episode, l.Spec)
	}
	end, err := head.Ended.Outcome(t.Context(), s, l.Episode)
	if err != nil || !reflect.DeepEqual(l.Ended, end) {
		t.Errorf("episode %d: %+v, want %+v, %v", l.Episode, l.Ended, end, err)
	}
	if _, playing := head.Playing[l.Episode]; playing != (l.State() == Playing) || l.Attempt != head.Progress(l.Episode).Attempt {
		t.Errorf("episode %d: %s, attempt %d", l.Episode, l.State(), l.Attempt)
	}
	if want == nil {
		want = &journal.Spending{}
	}
	want.Usage = llm.Usage{Input: want.Usage.Input, Output: want.Usage.Output} // the rest is not read
	if got, err := s.Spent(t.Context(), l); err != nil || got != *want {
		t.Errorf("episode %d: %+v, want %+v: %v", l.Episode, got, *want, err)
	}
}

// someAgent returns an agent of the episodes, or "".
func someAgent(all []Listed) string {
	for _, l := range all {
		for _, agent := range l.Spec.Lineup {
			return agent
		}
	}
	return ""
}

// checkChosen compares List for every choice with choosing from all episodes.
func checkChosen(t *testing.T, s *Store, all []Listed) {
	t.Helper()
	some := []int{0, 1, 2, 3, 8, 13, 21, 34, 55, 58, 59, 1 << 40}
	for _, want := range []Listing{{From: 7}, {Limit: 3}, {From: 58, Limit: 9}, {From: 60}, {State: Failed}, {State: Failed, From: 9, Limit: 2}, {Cell: "o"}, {Cell: "long", State: Failed}, {Cell: "%"}, {State: Playing}, {State: Ended, From: 3, Limit: 5}, {State: Playing, From: 3, Cell: "o"}, {State: Waiting}, {State: Waiting, From: 9, Limit: 2}, {State: Waiting, From: 58}, {State: Waiting, Cell: "o"}, {Agent: "nobody"}, {Agent: someAgent(all), Limit: 5}, {Agent: someAgent(all), State: Waiting}, {Among: []int{}}, {Among: some}, {Among: some, State: Failed}, {Among: some, State: Waiting, From: 9}, {Among: some, Cell: "o", Limit: 2}} {
		var should []Listed
		for _, l := range all {
			if l.Episode >= want.From && (want.Among == nil || slices.Contains(want.Among, l.Episode)) && (want.State == "" || l.State() == want.State) && (want.Agent == "" || slices.Contains(slices.Collect(maps.Values(l.Spec.Lineup)), want.Agent)) && strings.Contains(l.Spec.Cell, want.Cell) && (want.Limit == 0 || len(should) < want.Limit) {
				should = append(should, l)
			}
		}
		got, err := s.List(t.Context(), want)
		if err != nil || !slices.EqualFunc(got, should, func(a, b Listed) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("%+v: %d listed, want %d: %v", want, len(got), len(should), err)
		}
	}
	if _, err := s.List(t.Context(), Listing{From: -1}); err == nil {
		t.Error("a negative From is fine")
	}
}

// TestReplies: Replies gives the replies of the journal, with their numbers.
func TestReplies(t *testing.T) {
	t.Parallel()
	entries := mixed(400, 1) // more than are read at once
	if len(entries) < 2*readAtOnce {
		t.Fatalf("only %d entries", len(entries))
	}
	s := kept(t, entries)
	for _, prompts := range []bool{true, false} {
		n := 0
		err := s.Replies(t.Context(), 0, prompts, func(r Recorded) error {
			want := *entries[r.Call-1].(*journal.Replied)
			if !prompts {
				q := *want.Request
				q.Messages = nil
				want.Request = &q
			}
			if !reflect.DeepEqual(*r.Replied, want) || r.Settings != `{"model":"`+want.Request.Model+`"}` {
				t.Errorf("call %d: %+v, want %+v", r.Call, *r.Replied, want)
			}
			n++
			return nil
		})
		if head, _ := s.Head(t.Context()); err != nil || n != head.Calls {
			t.Errorf("%d replies, want %d: %v", n, head.Calls, err)
		}
	}
	stop, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	n := 0
	if err := s.Replies(t.Context(), 0, true, func(Recorded) error { n++; return why }); !errors.Is(err, why) || n != 1 {
		t.Errorf("%d calls of each, %v", n, err)
	}
	if err := s.Replies(stop, 0, true, func(Recorded) error { cancel(why); return nil }); !errors.Is(err, why) {
		t.Errorf("a context that ends: %v", err)
	}
}

// BenchmarkList does what parley show does first, on a run of a million calls.
func BenchmarkList(b *testing.B) {
	s, err := OpenRead(built(b, 1_000_000))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		o, err := s.Outline(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		list, err := s.List(context.Background(), Listing{From: o.Episodes.Total / 2, Limit: 50})
		if err != nil || len(list) != 50 {
			b.Fatal(len(list), err)
		}
		for i := range list {
			if _, err := s.Spent(context.Background(), &list[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
}
