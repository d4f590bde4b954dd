package label

import (
	"cmp"
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

// Add adds a label to the set, not to the file.
func (s *Set) Add(l Label) {
	if s.of == nil {
		s.of = map[int][]Label{}
	}
	s.All = append(s.All, l)
	s.of[l.Episode] = append(s.of[l.Episode], l)
}

// Of returns the labels of an episode and of its messages.
func (s *Set) Of(episode int) []Label { return s.of[episode] }

// MaxTags is how many tags lists have, and how many become scores.
const MaxTags = 50

// Tags returns the MaxTags tags that most labels have, in alphabetical order. left is how many others there are.
func (s *Set) Tags() (tags []string, left int) { return s.tags(func(int) bool { return true }) }

// tags does the same for the labels of some episodes.
func (s *Set) tags(of func(episode int) bool) (tags []string, left int) {
	used := map[string]int{}
	for _, l := range s.All {
		if l.Tag != "" && of(l.Episode) {
			used[l.Tag]++
		}
	}
	tags = slices.SortedFunc(maps.Keys(used), func(a, b string) int { return cmp.Or(cmp.Compare(used[b], used[a]), cmp.Compare(a, b)) })
	left = max(0, len(tags)-MaxTags)
	tags = tags[:len(tags)-left]
	slices.Sort(tags)
	return tags, left
}

// Prefix is what the names of scores that are made of labels begin with.
const Prefix = "label/"

// VerdictScore is the name of the score that is made of verdicts.
const VerdictScore = Prefix + "verdict"

// Verdict returns the verdict of an episode: 1 for pass and 0 for fail, and the mean if several people gave one. Unsure
// does not count, and neither do verdicts on messages. ok is false if there is none.
func (s *Set) Verdict(episode int) (v float64, ok bool) {
	sum, n := 0.0, 0
	for _, l := range s.of[episode] {
		if v := l.Verdict.value(); v >= 0 && l.Call == "" {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(max(1, n)), n > 0
}

// Scores returns labels as scores of whole episodes, by episode, for a run with the given number of episodes: labels of
// others are left out, because anybody can write the file. Only episodes with a label have scores: nobody looked at the
// rest.
//
// A tag is 1 if the episode or one of its messages has it, and 0 if not. Only the MaxTags tags that most labels have
// become scores; left is how many others there are.
func (s *Set) Scores(episodes int) (scores map[int][]world.Score, left int) {
	exists := func(episode int) bool { return episode < episodes }
	tags, left := s.tags(exists)
	scores = map[int][]world.Score{}
	for episode, labels := range s.of {
		if !exists(episode) {
			continue
		}
		if v, ok := s.Verdict(episode); ok {
			scores[episode] = append(scores[episode], world.Score{Name: VerdictScore, Value: v})
		}
		has := map[string]bool{}
		for _, l := range labels {
			has[l.Tag] = true
		}
		for _, tag := range tags {
			value := 0.0
			if has[tag] {
				value = 1
			}
			scores[episode] = append(scores[episode], world.Score{Name: Prefix + tag, Value: value})
		}
	}
	return scores, left
}
