package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestActsOfWorlds: an act that a world brings has one key, also if it is carried out again because its process was killed, and the
// world is told what it raised, also when it is played again.
func TestActsOfWorlds(t *testing.T) {
	t.Parallel()
	const episodes = 3
	runs := map[string]int{} // by key
	var mu sync.Mutex
	play := func(j journal.Journal) (Result, error) {
		c := config(&models{width: 1}, j, episodes)
		c.Begun.Run = "r1"
		do := func(_ context.Context, key string) (json.RawMessage, error) {
			mu.Lock()
			defer mu.Unlock()
			runs[key]++
			return nil, &world.CodeError{Text: "w.py:3: ValueError: no", Trace: "Traceback"}
		}
		k := crowd()
		k.Play = func(_ *turns, t *world.Table) world.Outcome {
			said := ""
			for range 2 {
				for _, r := range t.Ask(world.Call{Seat: "a", Act: &world.Act{Name: "f", Do: do}}, world.Call{Seat: "a", Act: &world.Act{Name: "g", Do: do}}) {
					said += string(r.Failed) + " " + r.Why + "; "
				}
			}
			t.One(world.Call{Seat: "a", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}}})
			return world.Outcome{Data: said}
		}
		c.Kind = world.Define(k)
		return Run(t.Context(), c)
	}
	for left := range 40 {
		j := &cutJournal{left: left}
		_, _ = play(j)
		if res, err := play(&j.Memory); err != nil || res.State != journal.Complete {
			t.Fatalf("cut after %d: %+v, %v", left, res, err)
		}
		head, _ := j.Memory.Head(t.Context()) // Memory never fails
		for e := range head.Ended.All() {
			ended, err := head.Ended.Outcome(t.Context(), &j.Memory, e.Episode)
			if err != nil {
				t.Fatal(err)
			}
			const once = "raised w.py:3: ValueError: no; "
			if want := fmt.Sprintf("%q", once+once+once+once); fmt.Sprintf("%s", ended.Outcome.Data) != want {
				t.Errorf("cut after %d: the world was told %s, want %s", left, ended.Outcome.Data, want)
			}
		}
	}
	if len(runs) != 4*episodes || runs["r1.2.0.1.0"] == 0 {
		t.Errorf("the keys are %v: want one for each of %d acts", runs, 4*episodes)
	}
}
