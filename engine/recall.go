package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"parley/journal"
	"parley/world"
)

// recorded is what the journal has of an attempt at an episode, by turn.
type recorded map[journal.Turn]*recordedTurn

// recordedTurn is a turn as the journal has it. It may have replies before it is known to
// have been turned, and nil is one of which there is nothing.
type recordedTurn struct {
	digest  journal.Digest
	calls   int // -1: not turned
	replies []*world.Reply
	bills   []bill // of replies, where there is a budget
}

func (t *recordedTurn) turned() bool { return t != nil && t.calls >= 0 }

func (t *recordedTurn) has(reply int) bool {
	return t != nil && reply < len(t.replies) && t.replies[reply] != nil
}

// diverged says whether a recorded turn is another than the one played now. What a fork
// copied has no digest, since other agents may ask in other words: only the number of
// calls must be the same.
func (t *recordedTurn) diverged(digest journal.Digest, calls int) bool {
	if t.digest == (journal.Digest{}) {
		return t.calls != calls
	}
	return t.digest != digest
}

// recalled is what is read ahead of the episodes that are begun again. They are begun in
// order, so it is read in order, by one goroutine, a part at a time.
type recalled struct {
	parts chan map[int]recorded // closed when all is read, or reading failed
	err   error                 // valid when parts is closed

	mu   sync.Mutex
	have map[int]recorded
}

// partSize is how many entries are read at once: enough to read those of many episodes in
// one go, and few enough for two parts to be held in memory.
const partSize = 100_000

// recall finds what the journal has of an episode.
func (r *run) recall(ctx context.Context, ep *episode) error {
	c := &r.recalled
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.have[ep.number] == nil {
		select {
		case part, ok := <-c.parts:
			if !ok {
				return c.err
			}
			maps.Copy(c.have, part)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	ep.recorded = c.have[ep.number]
	delete(c.have, ep.number)
	return nil
}

// readAhead reads what the journal has of all episodes that did not end.
func (r *run) readAhead(ctx context.Context) {
	defer close(r.recalled.parts)
	todo := slices.Sorted(maps.Keys(r.head.Playing))
	for len(todo) > 0 {
		n := 0
		for entries := 0; n < len(todo) && entries < partSize; n++ {
			entries += r.head.Playing[todo[n]].Entries
		}
		part, err := r.readPart(ctx, todo[:n])
		if err != nil {
			r.recalled.err = err
			return
		}
		select {
		case r.recalled.parts <- part:
		case <-ctx.Done():
			r.recalled.err = context.Cause(ctx)
			return
		}
		todo = todo[n:]
	}
	r.recalled.err = errors.New("engine: an episode was begun out of order") // nobody may ask for more
}

func (r *run) readPart(ctx context.Context, episodes []int) (map[int]recorded, error) {
	part := make(map[int]recorded, len(episodes))
	for _, n := range episodes {
		part[n] = recorded{}
	}
	in := journal.Span{From: episodes[0], To: episodes[len(episodes)-1] + 1, Replay: true}
	err := r.Journal.Read(ctx, in, func(e journal.Entry) error {
		switch e := e.(type) {
		case *journal.Turned:
			if t := r.turnIn(part, e.Turn); t != nil {
				t.digest, t.calls = e.Digest, e.Calls
			}
		case *journal.Replied:
			if t := r.turnIn(part, e.Turn); t != nil {
				t.add(e, r.EpisodeBudget > 0)
			}
		}
		return nil
	})
	return part, err
}

// turnIn is where a turn is kept; nil for one of an attempt that was given up.
func (r *run) turnIn(part map[int]recorded, at journal.Turn) *recordedTurn {
	rec, ok := part[at.Episode]
	if !ok || at.Attempt != r.head.Playing[at.Episode].Attempt {
		return nil
	}
	t := rec[at]
	if t == nil {
		t = &recordedTurn{calls: -1}
		rec[at] = t
	}
	return t
}

func (t *recordedTurn) add(e *journal.Replied, billed bool) {
	for len(t.replies) <= e.Index {
		t.replies = append(t.replies, nil)
	}
	reply := e.Reply()
	t.replies[e.Index] = &reply
	if billed {
		for len(t.bills) < len(t.replies) {
			t.bills = append(t.bills, bill{})
		}
		t.bills[e.Index] = billOf(e)
	}
}
