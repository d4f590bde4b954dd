package results

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/world"
)

// Scored says which episodes of which run a scorer scores. It is a param of the run of a scorer, beside the scorer's own.
type Scored struct {
	// Run is the id of the run whose episodes are scored.
	Run string `json:"run"`
	// Episodes are the numbers of the episodes, such as 0-99,103. The params of an episode do not have them: see Of.
	Episodes string `json:"episodes"`
	// Measures are the scores that the scorer declares.
	Measures []Measure `json:"measures"`
	// Episode is the one that this episode scores.
	Episode int `json:"episode"`
}

// ScoredParam is the name of the param that holds Scored.
const ScoredParam = "scored"

// Measure is a score that a scorer declares. Without a bound, there is no lowest or highest value.
type Measure struct {
	Name string   `json:"name"`
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
}

// Bounds returns the possible values of the scores, by name.
func (s Scored) Bounds() map[string]world.Bounds {
	out := map[string]world.Bounds{}
	for _, m := range s.Measures {
		b := world.Anything()
		if m.Low != nil {
			b.Low = *m.Low
		}
		if m.High != nil {
			b.High = *m.High
		}
		out[m.Name] = b
	}
	return out
}

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

// Of returns s for the episode that scores the one with this number. It does not depend on which others are scored, so that
// the run of a scorer can grow with the run that it scores. The deal of that episode is the number too, and numbers rise within a stage.
func (s Scored) Of(episode int) Scored {
	s.Episode, s.Episodes = episode, ""
	return s
}

// With returns s with other measures.
func (s Scored) With(measures []world.Measure) Scored {
	s.Measures = []Measure{}
	for _, m := range measures {
		one := Measure{Name: m.Name}
		b := m.Bounds
		if !b.Any() && !math.IsInf(b.Low, 0) {
			one.Low = &b.Low
		}
		if !b.Any() && !math.IsInf(b.High, 0) {
			one.High = &b.High
		}
		s.Measures = append(s.Measures, one)
	}
	return s
}
