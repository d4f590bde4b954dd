package estimate

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/kit/queue"
	"parley/journal"
)

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
