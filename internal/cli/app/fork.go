package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"parley/internal/ask/trust"
	"parley/internal/kit/text"
	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

// maxRepeats limits the size of a fork, since all of it is written in one transaction.
const maxRepeats = 10_000

// Fork makes a new run of an episode that continues in another way from one of its turns.
type Fork struct {
	// From is the run file. It is only read, and may be in play.
	From string
	// Episode is the number of the episode, and Turn the first turn that is played again.
	// Turn counts the turns of the first strand. Strands that began before it are kept.
	Episode, Turn int
	// Phase names the turn instead, as the world names it: F1902M. Empty: Turn is the turn.
	Phase string
	// Sets are overrides of the episode's plan, as for planfile.FromJSON.
	Sets []string
	// Repeat is how many episodes continue from there: 1 or more.
	Repeat int
	// File is the new run file. It must not exist.
	File string
	// Kinds are those that can be played.
	Kinds []world.Kind
	// Tool is the program that writes the file, such as parley 0.1.0.
	Tool string
	// Code is the code that the plan names.
	Code []journal.Code
	// Trust and Reach are those of Play.
	Trust *trust.Gate
	Reach *planfile.Reach
}

// Write makes the run file, ready to be resumed. It writes the whole file or none.
func (f Fork) Write(ctx context.Context) error {
	if err := checkFile(f.File, false); err != nil {
		return err
	}
	entries, err := f.entries(ctx, f.Kinds)
	if err != nil {
		return err
	}
	store, err := runfile.Open(ctx, f.File, runfile.Create)
	if err != nil {
		return err
	}
	if err := errors.Join(store.Append(ctx, entries...), store.Close()); err != nil {
		return errors.Join(err, os.Remove(f.File))
	}
	return nil
}

// entries returns the first entries of the new run file: its setup, its episodes, and the
// turns that each episode keeps.
func (f Fork) entries(ctx context.Context, kinds []world.Kind) (_ []journal.Entry, err error) {
	if f.Repeat < 1 || f.Repeat > maxRepeats {
		return nil, f.refuse("%d repeats: want 1 to %d", f.Repeat, maxRepeats)
	}
	from, err := runfile.OpenRead(f.From)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	head, err := from.Head(ctx)
	if err != nil {
		return nil, err
	}
	original, err := f.spec(head)
	if err != nil {
		return nil, err
	}
	recorded, err := journal.Episode(ctx, from, f.Episode)
	if err != nil {
		return nil, err
	}
	past := readPast(recorded, head.Progress(f.Episode).Attempt)
	plan, err := f.plan(head, original, kinds)
	if err != nil {
		return nil, err
	}
	spec := world.Spec{Kind: plan.Kind.Name, Params: plan.ParamsJSON, Lineup: plan.Lineup, Deal: original.Deal}
	if f.Phase != "" {
		if f.Turn, err = f.find(plan, spec, past); err != nil {
			return nil, err
		}
	}
	if err := f.within(past); err != nil {
		return nil, err
	}
	if err := f.continues(plan, head); err != nil {
		return nil, err
	}
	if err := (Play{Trust: f.Trust}).ready(plan, f.From); err != nil { // before the file exists, so that the user can try again
		return nil, err
	}
	kept, err := f.replay(plan, spec, past)
	if err != nil {
		return nil, err
	}
	begun, err := f.begun(plan, head.Begun.Run)
	if err != nil {
		return nil, err
	}
	specs, err := world.Blocks(world.Block{Groups: []world.Group{{Spec: spec, Size: f.Repeat}}, Rounds: 1})
	if err != nil {
		return nil, err
	}
	staged := &journal.Staged{Specs: specs}
	out := []journal.Entry{&begun, staged}
	for i := range f.Repeat {
		out = append(out, ofEpisode(i, kept)...)
	}
	return out, nil
}

// begun returns how the fork begins.
func (f Fork) begun(plan *planfile.Plan, of string) (journal.Begun, error) {
	prices, err := Prices(plan.Providers, plan.Prices)
	if err != nil {
		return journal.Begun{}, err
	}
	begun := Play{Tool: f.Tool, Code: f.Code}.begun(plan, prices, &journal.Head{})
	begun.Fork = &journal.Origin{File: f.From, Run: of, Episode: f.Episode, Turn: f.Turn}
	return begun, nil
}

// spec returns the spec of the episode.
func (f Fork) spec(head *journal.Head) (world.Spec, error) {
	if head.Begun == nil {
		return world.Spec{}, usageError{fmt.Errorf("%s holds no run yet: there is nothing to fork", f.From)}
	}
	total := 0
	for _, st := range head.Stages {
		if i := f.Episode - st.First; i >= 0 && i < st.Specs.Len() {
			return st.Specs.At(i), nil
		}
		total += st.Specs.Len()
	}
	if total == 0 {
		return world.Spec{}, usageError{fmt.Errorf("%s has no episodes yet", f.From)}
	}
	return world.Spec{}, usageError{fmt.Errorf("%s has no episode %d: it has 0 to %d", f.From, f.Episode, total-1)}
}

// within checks that the turn was played.
func (f Fork) within(p *Past) error {
	switch {
	case p.Last < 0:
		return f.refuse("it has made no calls yet")
	case f.Turn < 0 || f.Turn > p.Last:
		return f.refuse("there is no turn %d: it has 0 to %d", f.Turn, p.Last)
	}
	return nil
}

// plan returns the recorded plan, reduced to the episode, with the overrides.
func (f Fork) plan(head *journal.Head, original world.Spec, kinds []world.Kind) (*planfile.Plan, error) {
	if err := f.checkSets(); err != nil {
		return nil, err
	}
	b, err := f.reduced(head, original)
	if err != nil {
		return nil, fmt.Errorf("app: %s: the recorded plan: %w", f.From, err)
	}
	_, plan, err := Play{File: f.From, Kinds: kinds, Sets: f.Sets, Reach: f.Reach}.plans(b)
	if err != nil {
		return nil, err
	}
	return forFolder(plan, FolderOf(f.File)), nil
}

// continues checks that the kind can continue from the turn.
func (f Fork) continues(plan *planfile.Plan, head *journal.Head) error {
	switch {
	case f.Turn == 0: // nothing is kept
	case plan.Kind.Restarts():
		return f.refuse("%s plays outside of parley, where the turns before %d no longer exist: fork at turn 0", plan.Kind.Name, f.Turn)
	case plan.Kind.Version != head.Begun.KindVersion:
		return f.refuse("it was recorded with %s version %d, and this is version %d: fork it with the parley that recorded it, or at turn 0", plan.Kind.Name, head.Begun.KindVersion, plan.Kind.Version)
	}
	return nil
}

// reduced returns the recorded plan with the lineup and params of the episode, instead of
// the design of all episodes.
func (f Fork) reduced(head *journal.Head, original world.Spec) (json.RawMessage, error) {
	keys := map[string]json.RawMessage{}
	if err := json.Unmarshal(head.Begun.Plan, &keys); err != nil {
		return nil, err
	}
	delete(keys, "plan")
	delete(keys, "out")
	lineup, err := json.Marshal(original.Lineup)
	if err != nil {
		return nil, err
	}
	keys["lineup"], keys["episodes"] = lineup, json.RawMessage(strconv.Itoa(f.Repeat))
	if original.Params != nil {
		keys["params"] = original.Params
	}
	return json.Marshal(keys)
}

// checkSets refuses overrides of what a fork keeps, or sets with another flag.
func (f Fork) checkSets() error {
	for _, set := range f.Sets {
		key, _, _ := strings.Cut(set, "=")
		key, _, _ = strings.Cut(strings.ReplaceAll(key, `"`, ""), ".")
		switch key = strings.TrimSpace(key); key {
		case "kind":
			return f.refuse("--set %s: a fork plays the same kind: to play another, begin a new run", key)
		case "seed":
			return f.refuse("--set %s: a fork keeps its seed, since its deals depend on it: for more draws, use --repeat", key)
		case "episodes", "plan":
			return f.refuse("--set %s: a fork continues one episode: for more of it, use --repeat", key)
		case "out":
			return f.refuse("--set %s: name the new run file with --out", key)
		}
	}
	return nil
}

// find returns the turn that begins the phase.
func (f Fork) find(plan *planfile.Plan, spec world.Spec, past *Past) (int, error) {
	if plan.Kind.Restarts() {
		return 0, f.refuse("--phase %s: %s plays outside of parley, where what was played no longer exists: use --turn 0", f.Phase, plan.Kind.Name)
	}
	w, err := f.world(plan, spec)
	if err != nil {
		return 0, err
	}
	phases, err := past.Phases(w, world.Deal{Seed: plan.Seed, Number: spec.Deal})
	var names []string
	for _, p := range phases {
		if p.Is(f.Phase) && p.Turn <= past.Last {
			return p.Turn, nil
		}
		if p.Turn <= past.Last {
			names = append(names, p.Name)
		}
	}
	switch {
	case past.Last < 0:
		return 0, f.refuse("it has made no calls yet")
	case len(names) > 0:
		return 0, f.refuse("--phase %s: there is no such phase%s", f.Phase, text.Want(f.Phase, names))
	case err != nil:
		return 0, f.refuse("--phase %s: what was played does not fit the changed plan: %w", f.Phase, err)
	}
	return 0, f.refuse("--phase %s: the kind %s does not name its phases: use --turn", f.Phase, plan.Kind.Name)
}

// world returns the world of an episode of the plan.
func (f Fork) world(plan *planfile.Plan, spec world.Spec) (w world.World, err error) {
	params, err := plan.Kind.Read(spec.Params)
	if err != nil {
		return nil, f.refuse("%w", err)
	}
	lineup := world.Lineup{}
	for seat, name := range spec.Lineup {
		lineup[seat], _ = plan.Agent(name) // config has checked that there is one
	}
	err = results.Call(plan.Kind, "World", func() error { w, err = plan.Kind.World(params, lineup); return err })
	if err != nil {
		return nil, f.refuse("%w", err)
	}
	return w, nil
}

// replay returns what the fork keeps: the entries of the turns before f.Turn, as entries of episode 0.
func (f Fork) replay(plan *planfile.Plan, spec world.Spec, past *Past) ([]journal.Entry, error) {
	w, err := f.world(plan, spec)
	if err != nil {
		return nil, err
	}
	entries, err := past.Replay(w, world.Deal{Seed: plan.Seed, Number: spec.Deal}, f.Turn)
	if err != nil {
		return nil, f.refuse("what was played before turn %d does not fit the changed plan: %w: fork at an earlier turn, or change less", f.Turn, err)
	}
	return entries, nil
}

// refuse returns a usage error that names the file and the episode.
func (f Fork) refuse(format string, args ...any) error {
	return usageError{fmt.Errorf("fork of %s, episode %d: %w", f.From, f.Episode, fmt.Errorf(format, args...))}
}

// ofEpisode returns copies of the entries of episode 0 for episode n.
func ofEpisode(n int, entries []journal.Entry) []journal.Entry {
	out := make([]journal.Entry, len(entries))
	for i, e := range entries {
		switch e := e.(type) {
		case *journal.Turned:
			other := *e
			other.Episode = n
			out[i] = &other
		case *journal.Replied:
			other := *e
			other.Episode = n
			out[i] = &other
		}
	}
	return out
}
