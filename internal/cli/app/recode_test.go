package app

import (
	"context"
	"errors"
	"testing"

	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
)

// TestNewCodeIsRecordedWhenPlayed: code that can play nothing of a run leaves it as it was, so that the restored code continues it.
func TestNewCodeIsRecordedWhenPlayed(t *testing.T) {
	t.Parallel()
	file := inFolder(t)
	play := func(prompt, sum string, change bool, stop func()) error {
		kinds := []world.Kind{world.Define(worldtest.Simple[struct{}]{
			Kind: world.About{Name: "edited", Version: 1}, Sits: []string{"a"},
			Play: func(_ *struct{}, t *world.Table) world.Outcome {
				for i := range 100 { // many: a run that is stopped makes a few calls more
					if i == 2 {
						stop()
					}
					t.One(world.Call{Seat: "a", Ask: llm.Request{Messages: []llm.Message{llm.User(prompt)}}})
				}
				return world.Outcome{}
			},
		})}
		plan, err := planfile.Parse("plan.yaml", []byte("kind: edited\nagents: {a: sim/small}\n"), kinds, nil)
		if err != nil {
			t.Fatal(err)
		}
		drain, cancel := context.WithCancel(t.Context())
		defer cancel()
		if stop == nil {
			stop = func() {}
		} else {
			stop = cancel
		}
		code := []journal.Code{{Name: "edited.py:Edited", Language: "python 3.11.7", Files: map[string]string{"edited.py": sum}}}
		_, err = Play{Kinds: kinds, Plan: plan, File: file, Code: code, ChangedCode: change}.Run(t.Context(), drain)
		return err
	}
	edits := func() (sum string, edited []journal.Growth) {
		store, err := runfile.OpenRead(file)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		head, err := store.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return head.Begun.Code[0].Files["edited.py"], head.Begun.Edited
	}
	if err := play("Hello.", "1", false, func() {}); err != nil {
		t.Fatal(err)
	}
	if err := play("Good day.", "2", true, nil); !errors.Is(err, engine.ErrDiverged) {
		t.Fatal(err)
	}
	if err := play("Good day.", "2", false, nil); !IsUsage(err) {
		t.Fatal(err)
	}
	if sum, edited := edits(); sum != "1" || len(edited) > 0 {
		t.Errorf("nothing was played with the new code, and it is recorded: %s, %v", sum, edited)
	}
	if err := play("Hello.", "1", false, func() {}); err != nil { // the restored code
		t.Fatal(err)
	}
	if err := play("Hello.", "3", true, nil); err != nil { // asks the same
		t.Fatal(err)
	}
	if sum, edited := edits(); sum != "3" || len(edited) != 1 || edited[0].Episodes != 1 {
		t.Errorf("the code that played is not recorded: %s, %v", sum, edited)
	}
}
