package estimate

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/kit/queue"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Bench plays a plan several ways on the simulated provider and measures how long each
// takes, compared with the shortest possible time.
type Bench struct {
	Plan *planfile.Plan
	// Latency is how long calls take. A call takes the same time in every way of playing.
	Latency sim.Delay
	// Calls limits the calls in flight. Default: 64.
	Calls int
	// OneByOne is how many episodes of the first stage are played one call at a time. To play
	// the whole plan that way, set it to the number of its episodes: that takes the sum of all
	// latencies. Default: 4.
	OneByOne int
	// Actors carries out the acts of episodes. Default: every act fails.
	Actors Actors
}

// BenchResult is the result of a Bench.
type BenchResult struct {
	Episodes    int     `json:"episodes"`
	Calls       int     `json:"calls"`
	Latency     string  `json:"latency"`
	MeanLatency float64 `json:"mean_latency_s"`
	Concurrency int     `json:"concurrency"`
	// Serial is how long all calls take one after the other.
	Serial float64    `json:"serial_s"`
	Ways   []BenchWay `json:"ways"`
	// Same reports whether every way that played all episodes had the same outcomes.
	Same   bool   `json:"same"`
	Digest string `json:"digest"`
}

// BenchWay is one way of playing.
type BenchWay struct {
	Name     string `json:"name"`
	Episodes int    `json:"episodes"`
	Calls    int    `json:"calls"`
	// Wall is how long it took. Ideal is the shortest possible time with these latencies and
	// this limit of calls in flight.
	Wall   float64 `json:"wall_s"`
	Ideal  float64 `json:"ideal_s"`
	Ratio  float64 `json:"ratio"`
	Waves  int     `json:"waves,omitempty"`
	Digest string  `json:"digest"`
}

// Run plays the plan in every way.
func (b Bench) Run(ctx context.Context) (*BenchResult, error) {
	b.Calls, b.OneByOne = cmp.Or(max(0, b.Calls), 64), cmp.Or(max(0, b.OneByOne), 4)
	free, all, err := b.way(ctx, "free pace", 0, b.Calls, false)
	if err != nil {
		return nil, err
	}
	wave, _, err := b.way(ctx, "waves", 0, b.Calls, true)
	if err != nil {
		return nil, err
	}
	n := b.OneByOne
	if n >= free.Episodes {
		n = 0 // all
	}
	few, _, err := b.way(ctx, "one by one", n, 1, false)
	if err != nil {
		return nil, err
	}
	res := &BenchResult{
		Episodes: free.Episodes, Calls: free.Calls, Latency: b.Latency.String(), Concurrency: b.Calls,
		Serial: all.serial().Seconds(), Ways: []BenchWay{*few, *free, *wave},
		Same: free.Digest == wave.Digest && (n > 0 || few.Digest == free.Digest), Digest: free.Digest,
	}
	if free.Calls > 0 {
		res.MeanLatency = res.Serial / float64(free.Calls)
	}
	return res, nil
}

// way plays the plan, or its first episodes, in one way.
func (b Bench) way(ctx context.Context, name string, episodes, calls int, wave bool) (*BenchWay, stages, error) {
	model, err := sim.New(sim.Config{StandIns: sim.StandIns(b.Plan.Kind)})
	if err != nil {
		return nil, nil, err
	}
	models, err := dispatch.New(dispatch.Config{Open: func(name string) (dispatch.Lane, error) {
		p := provider.Provider{Name: name, Dialect: "sim", Limits: provider.Limits{Concurrency: calls}}
		return dispatch.Lane{Provider: p, Model: slow{model, b.Latency}}, nil
	}})
	if err != nil {
		return nil, nil, err
	}
	plan, err := b.Plan.World()
	if err != nil {
		return nil, nil, err
	}
	if episodes > 0 {
		plan = first(plan, episodes)
	}
	memory := &journal.Memory{}
	c := engine.Config{Journal: memory, Plan: plan, Models: models, Calls: calls, Wave: wave}
	res, err := b.Actors.play(ctx, &c, "bench", b.Plan)
	if err != nil {
		return nil, nil, err
	}
	table, err := stagesPlayed(ctx, memory)
	if err != nil {
		return nil, nil, err
	}
	w := &BenchWay{Name: name, Episodes: res.Episodes, Calls: res.Asked, Wall: res.Wall.Seconds(), Digest: res.Digest}
	ideal, waves := table.ideal(calls, wave)
	w.Ideal, w.Waves = ideal.Seconds(), waves
	if w.Ideal > 0 {
		w.Ratio = w.Wall / w.Ideal
	}
	return w, table, nil
}

// first reduces a plan to the first episodes of its first stage.
func first(plan world.Plan, episodes int) world.Plan {
	var specs []world.Spec
	for i, s := range plan.Next(nil).All() {
		if i >= episodes {
			break
		}
		specs = append(specs, s)
	}
	return world.List(specs...)
}

// slow is a model that waits before it answers, the same time for the same request.
type slow struct {
	llm.Model
	latency sim.Delay
}

// Ask waits, then asks. It reports the intended latency, not the measured one.
func (s slow) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	digest := req.Digest()
	wait := s.latency.Draw(binary.BigEndian.Uint64(digest[:]))
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return nil, llm.ContextError(ctx)
	}
	resp, err := s.Model.Ask(ctx, req)
	if resp != nil {
		resp.Metadata.Latency = wait
	}
	return resp, err
}

// stages are the timetables of a run's stages. A stage begins when the one before has ended.
type stages []timetable

// serial is how long all calls take one after the other.
func (s stages) serial() (sum time.Duration) {
	for _, steps := range slices.Concat(s...) {
		for _, st := range steps {
			for _, wait := range st.waits {
				sum += wait
			}
		}
	}
	return sum
}

// ideal is the shortest time that the stages can take.
func (s stages) ideal(calls int, wave bool) (sum time.Duration, waves int) {
	for _, t := range s {
		took, n := t.ideal(calls, wave)
		sum += took
		waves += n
	}
	return sum, waves
}

// timetable holds the turns of a stage that was played, by episode.
type timetable [][]*step

// step holds the calls of one turn, and the turns that must end before it begins.
type step struct {
	at     journal.Turn
	path   []int
	waits  []time.Duration // of its calls
	after  []*step         // that wait for this one
	before int             // how many this one waits for
	open   int             // calls without an answer
}

// stagesPlayed reads the turns and latencies of a run.
func stagesPlayed(ctx context.Context, j journal.Journal) (stages, error) {
	steps := map[journal.Turn]*step{}
	var begins []int // the first episode of each stage
	err := j.Read(ctx, journal.Whole(), func(e journal.Entry) error {
		if st, ok := e.(*journal.Staged); ok {
			begins = append(begins, st.First)
		}
		r, ok := e.(*journal.Replied)
		if !ok || r.Request == nil {
			return nil
		}
		s := steps[r.Turn]
		if s == nil {
			s = &step{at: r.Turn}
			steps[r.Turn] = s
		}
		var wait time.Duration
		if r.Response != nil {
			wait = r.Response.Metadata.Latency
		}
		s.waits = append(s.waits, wait)
		return nil
	})
	if err != nil {
		return nil, err
	}
	byEpisode := map[int][]*step{}
	for _, s := range steps {
		byEpisode[s.at.Episode] = append(byEpisode[s.at.Episode], s)
	}
	all := make(stages, max(1, len(begins)))
	for _, n := range slices.Sorted(maps.Keys(byEpisode)) {
		at, found := slices.BinarySearch(begins, n)
		if !found {
			at = max(0, at-1) // of the last that began before
		}
		all[at] = append(all[at], link(byEpisode[n]))
	}
	return all, nil
}

// link connects the turns of an episode that wait for each other. A turn waits for the one
// before it in its strand, the first turn of a forked strand for the turn before the fork, and
// the turn after a fork for all its strands.
func link(steps []*step) []*step {
	for _, s := range steps {
		s.path = append(pathNumbers(s.at.Strand), s.at.Turn)
	}
	slices.SortFunc(steps, func(a, b *step) int { return slices.Compare(a.path, b.path) })
	for i, s := range steps {
		for _, earlier := range steps[:i] {
			if waitsFor(s.path, earlier.path) {
				earlier.after = append(earlier.after, s)
				s.before++
			}
		}
	}
	return steps
}

// pathNumbers reads the path of a strand: "4.2/1.0/" is 4, 2, 1, 0.
func pathNumbers(path string) []int {
	var out []int
	for part := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		for number := range strings.SplitSeq(part, ".") {
			if n, err := strconv.Atoi(number); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// waitsFor reports whether a turn can begin only after an earlier one. A path is turn, fork,
// turn, fork, …, turn. The turns wait for each other if their paths first differ in a turn: then
// they are of one strand, not of two strands of one fork.
func waitsFor(later, earlier []int) bool {
	for i := range min(len(later), len(earlier)) {
		if later[i] != earlier[i] {
			return i%2 == 0 && later[i] > earlier[i]
		}
	}
	return len(later) != len(earlier)
}

// due is a call that waits to be sent, or for its answer.
type due struct {
	step    *step
	episode int
	wait    time.Duration
	at      time.Duration // when it is answered
}

// ideal is how long the stage takes with this limit of calls in flight and no time lost between
// them. An episode continues at once, or only with the next wave. The oldest episodes go first
// and, within an episode, the calls that were made first, as in the engine.
func (t timetable) ideal(calls int, wave bool) (end time.Duration, waves int) {
	var waiting, flying queue.Queue[due] // by episode, and by when they are answered
	var next []due                       // of the next wave
	release := func(episode int, s *step) {
		s.open = len(s.waits)
		for _, w := range s.waits {
			next = append(next, due{step: s, episode: episode, wait: w})
		}
	}
	left := map[*step]int{}
	for episode, steps := range t {
		for _, s := range steps {
			if left[s] = s.before; s.before == 0 {
				release(episode, s)
			}
		}
	}
	for {
		if !wave || (waiting.Len() == 0 && flying.Len() == 0) {
			if wave && len(next) > 0 {
				waves++
			}
			for _, d := range next {
				waiting.Push(d, int64(d.episode))
			}
			next = nil
		}
		for waiting.Len() > 0 && flying.Len() < calls {
			d := waiting.Pop()
			d.at = end + d.wait
			flying.Push(d, int64(d.at))
		}
		if flying.Len() == 0 {
			return end, waves
		}
		d := flying.Pop()
		end = d.at
		if d.step.open--; d.step.open > 0 {
			continue
		}
		for _, s := range d.step.after {
			if left[s]--; left[s] == 0 {
				release(d.episode, s)
			}
		}
	}
}
