package journal_test

import (
	"fmt"
	"testing"

	"parley/journal"
	"parley/journal/journaltest"
	"parley/llm"
	"parley/world"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	journaltest.Exercise(t, func(*testing.T) (journal.Journal, func() journal.Journal) {
		m := &journal.Memory{}
		return m, func() journal.Journal { return m }
	})
}

func turned(episode, attempt, calls int) *journal.Turned {
	return &journal.Turned{Turn: journal.Turn{Episode: episode, Attempt: attempt}, Calls: calls}
}

func replied(episode, attempt int, cost llm.Money) *journal.Replied {
	return &journal.Replied{
		Turn:     journal.Turn{Episode: episode, Attempt: attempt},
		Response: &llm.Response{Metadata: llm.Metadata{Cost: cost}},
	}
}

type headCase struct {
	entries []journal.Entry
	want    journal.Head // without its maps, which are:
	live    map[int]int  // attempts
	ended   int
}

func headCases() map[string]headCase {
	opened := &journal.Opened{}
	closed := &journal.Closed{State: journal.Stopped}
	return map[string]headCase{
		"nothing": {},
		"cut off with calls in flight": {
			entries: []journal.Entry{opened, turned(0, 0, 3), replied(0, 0, 5)},
			want:    journal.Head{Cut: true, Lost: 2, Calls: 1, Spent: 5}, live: map[int]int{0: 0},
		},
		"closed: nothing is lost": {
			entries: []journal.Entry{opened, turned(0, 0, 3), replied(0, 0, 5), closed},
			want:    journal.Head{Last: *closed, Calls: 1, Spent: 5}, live: map[int]int{0: 0},
		},
		"closed, opened again and cut off: what has no reply still counts": {
			entries: []journal.Entry{opened, turned(0, 0, 3), replied(0, 0, 5), closed, opened, replied(0, 0, 1)},
			want:    journal.Head{Cut: true, Lost: 1, Calls: 2, Spent: 6}, live: map[int]int{0: 0},
		},
		"less is owed when less is in flight": {
			entries: []journal.Entry{opened, &journal.Exposed{Worst: 9}, &journal.Exposed{Worst: 3}, turned(0, 0, 2)},
			want:    journal.Head{Cut: true, Lost: 2, Owed: 3}, live: map[int]int{0: 0},
		},
		"what is owed ends with the process": {
			entries: []journal.Entry{opened, &journal.Exposed{Worst: 9}, &journal.Exposed{Worst: 3}, turned(0, 0, 30), &journal.Opened{Lost: 5, Cost: 9}},
			want:    journal.Head{Cut: true, Lost: 30, Risked: 9}, live: map[int]int{0: 0},
		},
		"an episode that ended waits for nothing, and a late reply does not wake it": {
			entries: []journal.Entry{opened, turned(0, 0, 3), &journal.Ended{}, replied(0, 0, 5)},
			want:    journal.Head{Cut: true, Calls: 1, Spent: 5}, ended: 1,
		},
		"a new attempt gives up the calls of the one before": {
			entries: []journal.Entry{opened, turned(0, 0, 3), turned(0, 1, 1), replied(0, 0, 5)},
			want:    journal.Head{Cut: true, Lost: 1, Calls: 1, Spent: 5}, live: map[int]int{0: 1},
		},
		"a new attempt at an episode that ended opens it again": {
			entries: []journal.Entry{opened, turned(0, 0, 1), replied(0, 0, 5), &journal.Ended{}, turned(0, 1, 2)},
			want:    journal.Head{Cut: true, Lost: 2, Calls: 1, Spent: 5}, live: map[int]int{0: 1},
		},
		"what was copied cost nothing": {
			entries: []journal.Entry{opened, turned(0, 0, 1), &journal.Replied{Copied: true, Response: &llm.Response{Metadata: llm.Metadata{Cost: 7}}}},
			want:    journal.Head{Cut: true, Calls: 1}, live: map[int]int{0: 0},
		},
		"a failure may have cost something": {
			entries: []journal.Entry{opened, turned(0, 0, 1), &journal.Replied{Error: &llm.Error{Metadata: llm.Metadata{Cost: 7}}}},
			want:    journal.Head{Cut: true, Calls: 1, Spent: 7}, live: map[int]int{0: 0},
		},
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	for name, test := range headCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &journal.Head{}
			for _, e := range test.entries {
				h.Add(e)
			}
			if h.Cut != test.want.Cut || h.Lost != test.want.Lost || h.Owed != test.want.Owed || h.Calls != test.want.Calls || h.Spent != test.want.Spent || h.Risked != test.want.Risked || h.Last != test.want.Last {
				t.Errorf("got  %+v\nwant %+v", h, test.want)
			}
			if h.Ended.Len() != test.ended || len(h.Playing) != len(test.live) {
				t.Errorf("%d ended and %v live, want %d and %v", h.Ended.Len(), h.Playing, test.ended, test.live)
			}
			for episode, attempt := range test.live {
				if got, ok := h.Playing[episode]; !ok || got.Attempt != attempt {
					t.Errorf("episode %d is at attempt %d, want %d", episode, got.Attempt, attempt)
				}
			}
		})
	}
}

// TestPlayed: episodes that ended come in order, and those that wait cost nothing.
func TestPlayed(t *testing.T) {
	t.Parallel()
	var h journal.Head
	for _, e := range []journal.Entry{
		&journal.Staged{Specs: world.Repeat(world.Spec{Cell: "a"}, 10)},
		&journal.Staged{Stage: 1, First: 10, Specs: world.Repeat(world.Spec{Cell: "b"}, 2_000_000_000)},
		&journal.Ended{Episode: 1_000_000_010}, &journal.Ended{Episode: 9}, &journal.Ended{Episode: 10}, &journal.Ended{Episode: 3}, &journal.Ended{Episode: 2_000_000_010},
	} {
		h.Add(e)
	}
	var got []string
	for spec, e := range h.Played() {
		got = append(got, fmt.Sprint(e.Episode, spec.Cell, spec.Deal))
	}
	if want := "[3a3 9a9 10b0 1000000010b1000000000]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestReplyOfNothing(t *testing.T) {
	t.Parallel()
	if r := (&journal.Replied{}).Reply(); r.OK() {
		t.Errorf("a reply of nothing is an answer: %+v", r)
	}
}

// TestAccepted counts a batch as accepted from the answer of its provider until it is closed.
func TestAccepted(t *testing.T) {
	t.Parallel()
	var h journal.Head
	for i, c := range []struct {
		step journal.Step
		key  string
		open int
		want int
	}{
		{journal.BatchIntended, "a", 1, 0}, {journal.BatchUploaded, "a", 1, 0}, {journal.BatchIntended, "b", 2, 0},
		{journal.BatchCreated, "a", 2, 1}, {journal.BatchCreated, "unknown", 2, 1}, {journal.BatchClosed, "b", 1, 1}, {journal.BatchClosed, "a", 0, 0},
	} {
		h.Batch(i+1, &journal.Batched{Step: c.step, Key: c.key})
		if len(h.Batches) != c.open || h.Accepted() != c.want {
			t.Errorf("after step %d: %d of %v accepted, want %d", i, h.Accepted(), h.Batches, c.want)
		}
	}
}
