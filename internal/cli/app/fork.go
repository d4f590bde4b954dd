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
	entries, err := f.entries(ctx)
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
func (f Fork) entries(ctx context.Context) (_ []journal.Entry, err error) {
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
	plan, err := f.plan(head, original)
	if err != nil {
		return nil, err
	}
	spec := world.Spec{Kind: plan.Kind.Name, Params: plan.ParamsJSON, Lineup: plan.Lineup, Deal: original.Deal}
	if f.Phase != "" {
		if f.Turn, err = f.findPhase(plan, spec, past); err != nil {
			return nil, err
		}
	}
	if err := f.checkTurn(past); err != nil {
		return nil, err
	}
	if err := f.checkKind(plan, head); err != nil {
		return nil, err
	}
	if err := (Play{Config: Config{Trust: f.Trust}}).ready(plan, f.From); err != nil { // before the file exists, so that the user can try again
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

// checkTurn checks that the turn was played.
func (f Fork) checkTurn(p *episodePast) error {
	switch {
	case p.last < 0:
		return f.refuse("it has made no calls yet")
	case f.Turn < 0 || f.Turn > p.last:
		return f.refuse("there is no turn %d: it has 0 to %d", f.Turn, p.last)
	}
	return nil
}

// plan returns the recorded plan, reduced to the episode, with the overrides.
func (f Fork) plan(head *journal.Head, original world.Spec) (*planfile.Plan, error) {
	if err := f.checkSets(); err != nil {
		return nil, err
	}
	b, err := f.reduced(head, original)
	if err != nil {
		return nil, fmt.Errorf("%s: the recorded plan: %w", f.From, err)
	}
	_, plan, err := Play{File: f.From, Kinds: f.Kinds, Sets: f.Sets, Reach: f.Reach}.plans(b)
	if err != nil {
		return nil, err
	}
	return forFolder(plan, runFolder(f.File)), nil
}

// checkKind checks that the kind can continue from the turn.
func (f Fork) checkKind(plan *planfile.Plan, head *journal.Head) error {
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

// findPhase returns the turn that begins the phase.
func (f Fork) findPhase(plan *planfile.Plan, spec world.Spec, past *episodePast) (int, error) {
	if plan.Kind.Restarts() {
		return 0, f.refuse("--phase %s: %s plays outside of parley, where what was played no longer exists: use --turn 0", f.Phase, plan.Kind.Name)
	}
	w, err := f.world(plan, spec)
	if err != nil {
		return 0, err
	}
	phases, err := past.phases(w, world.Deal{Seed: plan.Seed, Number: spec.Deal})
	var names []string
	for _, p := range phases {
		if p.matches(f.Phase) && p.turn <= past.last {
			return p.turn, nil
		}
		if p.turn <= past.last {
			names = append(names, p.name)
		}
	}
	switch {
	case past.last < 0:
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
		lineup[seat], _ = plan.Agent(name) // planfile has checked that there is one
	}
	err = results.CallKind(plan.Kind, "World", func() error { w, err = plan.Kind.World(params, lineup); return err })
	if err != nil {
		return nil, f.refuse("%w", err)
	}
	return w, nil
}

// replay returns what the fork keeps: the entries of the turns before f.Turn, as entries of episode 0.
func (f Fork) replay(plan *planfile.Plan, spec world.Spec, past *episodePast) ([]journal.Entry, error) {
	w, err := f.world(plan, spec)
	if err != nil {
		return nil, err
	}
	entries, err := past.replayUntil(w, world.Deal{Seed: plan.Seed, Number: spec.Deal}, f.Turn)
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

// episodePast is the recorded part of one attempt at an episode. It plays the world again with the recorded replies to find what
// a fork keeps: the turns and replies before the turn at which it is played in another way. It asks nothing and writes nothing.
type episodePast struct {
	// last is the last turn of the first strand that made calls or forked. -1: no turn did.
	last    int
	calls   map[position]int // how many a turn made, as the file says
	replies map[call]*journal.Replied
}

// call is a call of a turn.
type call struct {
	at    position
	index int
}

// position is a turn of a strand.
type position struct {
	strand string
	turn   int
}

func (p position) String() string { return p.strand + strconv.Itoa(p.turn) }

// journalTurn returns the position in episode 0.
func (p position) journalTurn() journal.Turn { return journal.Turn{Strand: p.strand, Turn: p.turn} }

// readPast collects the entries of an attempt.
func readPast(entries []journal.Entry, attempt int) *episodePast {
	p := &episodePast{last: -1, calls: map[position]int{}, replies: map[call]*journal.Replied{}}
	for _, e := range entries {
		switch e := e.(type) {
		case *journal.Turned:
			if e.Attempt == attempt {
				p.addTurn(e)
			}
		case *journal.Replied:
			at := position{e.Strand, e.Turn.Turn}
			if n := p.calls[at]; e.Attempt == attempt && e.Index >= 0 && e.Index < n {
				p.replies[call{at, e.Index}] = e
			}
		}
	}
	return p
}

func (p *episodePast) addTurn(e *journal.Turned) {
	p.calls[position{e.Strand, e.Turn.Turn}] = max(0, e.Calls)
	turn := e.Turn.Turn
	if e.Strand != "" {
		// The path of every other strand begins with the first strand's turn: 4.2/…
		number, _, _ := strings.Cut(e.Strand, ".")
		turn, _ = strconv.Atoi(number)
	} else if e.Calls == 0 {
		return // the world wrote notes and ended
	}
	p.last = max(p.last, turn)
}

// replayUntil plays w with the recorded replies up to a turn of the first strand. It returns the turns and copies of the
// replies as entries of episode 0. It fails if w does not reach the turn, or does not ask the same seats for the same
// things as recorded. The engine cannot check that of copies.
func (p *episodePast) replayUntil(w world.World, deal world.Deal, turn int) ([]journal.Entry, error) {
	r := &replay{episodePast: p}
	if err := r.strand(world.Begin(w, deal), turn); err != nil {
		return nil, err
	}
	return r.entries, nil
}

// phase is a phase of an episode: its name, and the turn of the first strand that begins it.
type phase struct {
	name string
	turn int
}

// matches reports whether a person means the phase by a name. Case, spaces and hyphens do not count, and the number of a phase
// such as round 2 is enough.
func (p phase) matches(name string) bool {
	plain := func(s string) string { return strings.NewReplacer(" ", "", "-", "").Replace(strings.ToLower(s)) }
	fields := strings.Fields(p.name)
	return plain(name) == plain(p.name) || len(fields) == 2 && fields[1] == strings.TrimSpace(name)
}

// phases plays w with the recorded replies as far as there are any, and returns the phases that it begins. The error says
// why it could not be played farther, unless it was played to its end.
func (p *episodePast) phases(w world.World, deal world.Deal) ([]phase, error) {
	r := &replay{episodePast: p}
	err := r.strand(world.Begin(w, deal), toTheEnd)
	return r.phases, err
}

// replay is a world that is played again.
type replay struct {
	*episodePast
	entries []journal.Entry
	phases  []phase // of the first strand
}

// toTheEnd is the turn up to which forked strands are played.
const toTheEnd = -1

// strand plays s up to a turn.
func (r *replay) strand(s *world.Strand, until int) error {
	defer s.Stop()
	var replies []world.Reply
	for {
		t := s.Next(replies)
		replies = nil
		at := position{s.Path, t.Number}
		if s.Path == "" {
			for _, n := range t.Notes {
				if name := n.Phase(); name != "" {
					r.phases = append(r.phases, phase{name, t.Number})
				}
			}
		}
		switch {
		case t.Abort != nil:
			return t.Abort
		case t.Panic != "":
			return fmt.Errorf("at turn %s the world panics: %s", at, t.Panic)
		case t.Number == until:
			stopStrands(t.Forks)
			return nil // the world writes the notes of this turn again when the fork is played
		}
		if len(t.Notes) > 0 || len(t.Calls) > 0 {
			r.entries = append(r.entries, &journal.Turned{Turn: at.journalTurn(), Calls: len(t.Calls), Notes: t.Notes})
		}
		switch {
		case t.Done && until == toTheEnd:
			return nil
		case t.Done:
			return fmt.Errorf("it now ends at turn %s", at)
		case len(t.Forks) > 0:
			if err := r.forks(t.Forks); err != nil {
				return err
			}
		default:
			var err error
			if replies, err = r.copy(at, t.Calls); err != nil {
				return err
			}
		}
	}
}

func (r *replay) forks(forks []*world.Strand) error {
	defer stopStrands(forks) // also those that an error leaves unplayed
	for _, s := range forks {
		if err := r.strand(s, toTheEnd); err != nil {
			return err
		}
	}
	return nil
}

func stopStrands(strands []*world.Strand) {
	for _, s := range strands {
		s.Stop()
	}
}

// copy copies the recorded replies to the calls of a turn.
func (r *replay) copy(at position, calls []world.Call) ([]world.Reply, error) {
	recorded, ok := r.calls[at]
	if !ok || recorded != len(calls) {
		return nil, fmt.Errorf("turn %s now makes %d calls, and made %d", at, len(calls), recorded)
	}
	replies := make([]world.Reply, len(calls))
	for i, c := range calls {
		switch reply := r.replies[call{at, i}]; {
		case reply == nil:
			return nil, fmt.Errorf("call %s:%d has no reply", at, i)
		case reply.Seat != c.Seat || reply.Label != c.Label || (reply.Act != nil) != (c.Act != nil):
			return nil, fmt.Errorf("call %s:%d is now %s of %s, and was %s of %s", at, i, c.Label, c.Seat, reply.Label, reply.Seat)
		default:
			copied := *reply
			copied.Turn, copied.Copied = at.journalTurn(), true
			r.entries = append(r.entries, &copied)
			replies[i] = reply.Reply()
		}
	}
	return replies, nil
}
