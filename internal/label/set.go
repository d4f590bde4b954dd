package label

import (
	"maps"
	"slices"

	"parley/world"
)

// Set is the labels of a run.
type Set struct {
	All     []Label // in the order of the file
	Damaged int     // lines that could not be read

	of map[int][]Label // by episode
}

func (s *Set) add(l Label) {
	if s.of == nil {
		s.of = map[int][]Label{}
	}
	s.All = append(s.All, l)
	s.of[l.Episode] = append(s.of[l.Episode], l)
}

// Of returns the labels of an episode and of its messages.
func (s *Set) Of(episode int) []Label { return s.of[episode] }

// Tags returns the tags in use, in alphabetical order.
func (s *Set) Tags() []string {
	tags := map[string]bool{}
	for _, l := range s.All {
		if l.Tag != "" {
			tags[l.Tag] = true
		}
	}
	return slices.Sorted(maps.Keys(tags))
}

// Prefix is what the names of scores that are made of labels begin with.
const Prefix = "label/"

// VerdictScore is the name of the score that is made of verdicts.
const VerdictScore = Prefix + "verdict"

// Scores returns labels as scores of whole episodes, by episode. Only episodes with a label have scores: nobody looked
// at the others.
//
// The verdict of an episode is 1 for pass and 0 for fail, and the mean if several people gave one. Unsure does not
// count, and neither do verdicts on messages. A tag is 1 if the episode or one of its messages has it, and 0 if not.
func (s *Set) Scores() map[int][]world.Score {
	tags, out := s.Tags(), map[int][]world.Score{}
	for episode, labels := range s.of {
		sum, n := 0.0, 0
		has := map[string]bool{}
		for _, l := range labels {
			has[l.Tag] = true
			if v := l.Verdict.value(); v >= 0 && l.Call == "" {
				sum, n = sum+v, n+1
			}
		}
		if n > 0 {
			out[episode] = append(out[episode], world.Score{Name: VerdictScore, Value: sum / float64(n)})
		}
		for _, tag := range tags {
			value := 0.0
			if has[tag] {
				value = 1
			}
			out[episode] = append(out[episode], world.Score{Name: Prefix + tag, Value: value})
		}
	}
	return out
}
