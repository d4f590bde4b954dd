package results

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/journal"
	"parley/world"
)

// Scored says which episodes of which run a scorer scores. It is a param of the run of a scorer, beside the scorer's own.
type Scored struct {
	// Run is the id of the run whose episodes are scored.
	Run string `json:"run"`
	// Episodes are the numbers of the episodes, such as 0-99,103. The params of an episode do not have them: see Of.
	Episodes string `json:"episodes"`
	// Measures are the scores that the scorer declares, of no seats.
	Measures []world.Measure `json:"measures"`
	// Episode is the one that this episode scores.
	Episode int `json:"episode"`
	// Deal and Play are those of that episode: scores of episodes that are not independent are not independent either.
	Deal   Deal   `json:"deal,omitzero"`
	Play   string `json:"play,omitempty"`
	Chance bool   `json:"chance,omitempty"` // as in journal.Ended
}

// ScoredParam is the name of the param that holds Scored.
const ScoredParam = "scored"

// Numbers returns the numbers of the episodes, in order.
func (s Scored) Numbers() (all []int, err error) {
	for part := range strings.SplitSeq(s.Episodes, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if errors.Join(err, err2) != nil || from < 0 || to < from || to-from >= world.MaxEpisodes-len(all) {
			return nil, fmt.Errorf("the episodes %.40q are not numbers such as 0-99,103", part)
		}
		for n := from; n <= to; n++ {
			all = append(all, n)
		}
	}
	return all, nil
}

// Without returns s without the episodes of others.
func (s Scored) Without(others Scored) (Scored, error) {
	all, err := s.Numbers()
	if err != nil {
		return s, err
	}
	not, err := others.Numbers()
	s.Episodes = ranges(slices.DeleteFunc(all, func(n int) bool {
		_, found := slices.BinarySearch(not, n)
		return found
	}))
	return s, err
}

// NewScored says that episodes of a run are scored by measures. The numbers of the episodes are in order.
func NewScored(run string, episodes []int, measures []world.Measure) Scored {
	s := Scored{Run: run}.With(measures)
	s.Episodes = ranges(episodes)
	return s
}

// ranges writes numbers that are in order.
func ranges(episodes []int) string {
	var parts []string
	for i := 0; i < len(episodes); {
		last := i
		for last+1 < len(episodes) && episodes[last+1] == episodes[last]+1 {
			last++
		}
		part := strconv.Itoa(episodes[i])
		if last > i {
			part += "-" + strconv.Itoa(episodes[last])
		}
		parts, i = append(parts, part), last+1
	}
	return strings.Join(parts, ",")
}

// ScoredOf returns what the run of a scorer scores. It is empty for any other run.
func ScoredOf(b *journal.Begun) (Scored, error) {
	var plan struct {
		Params json.RawMessage `json:"params"`
	}
	if b == nil {
		return Scored{}, nil
	}
	if err := json.Unmarshal(b.Plan, &plan); err != nil {
		return Scored{}, err
	}
	return ScoredIn(plan.Params)
}

// ScoredIn returns what params say about what is scored.
func ScoredIn(params json.RawMessage) (Scored, error) {
	var p struct {
		Scored Scored `json:"scored"`
	}
	err := json.Unmarshal(params, &p)
	return p.Scored, err
}

// Scorable returns a function that makes the spec of the episode that scores the one with a number: in its cell, with what decides
// whether it is independent. It does not depend on which others are scored, so that the run of a scorer can grow with the run that it
// scores. Its deal is the number, and numbers rise within a stage.
func (r *Run) Scorable() Scorable {
	deals := r.Deals()
	return func(own world.Spec, s Scored, episode int, params func(Scored) (json.RawMessage, error)) (_ world.Spec, err error) {
		spec, ok := r.Spec(episode)
		if !ok {
			return own, fmt.Errorf("the run has no episode %d", episode)
		}
		s.Episode, s.Episodes = episode, ""
		s.Deal = deals.Of(spec)
		if r.Head.Begun.Fork != nil { // all have one deal, and the question is how it can end
			s.Deal = Deal{Run: r.Head.Begun.Run, Kind: spec.Kind, Number: episode}
		}
		if e, ended := r.Head.Ended.Of(episode); ended {
			s.Play, s.Chance = hex.EncodeToString(e.Play[:]), e.Chance
		}
		own.Cell, own.Deal = spec.Cell, episode
		own.Params, err = params(s)
		return own, err
	}
}

// Scorable makes the spec of the episode that scores another: see Run.Scorable. params writes the params with what is scored.
type Scorable func(own world.Spec, s Scored, episode int, params func(Scored) (json.RawMessage, error)) (world.Spec, error)

// With returns s with other measures. Without bounds, a measure has no lowest and no highest value.
func (s Scored) With(measures []world.Measure) Scored {
	s.Measures = []world.Measure{}
	for _, m := range measures {
		if m.Any() {
			m.Bounds = world.Anything()
		}
		s.Measures = append(s.Measures, world.Measure{Name: m.Name, Bounds: m.Bounds})
	}
	return s
}
