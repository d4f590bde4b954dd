package score

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/world"
	"parley/world/exhibit"
	"parley/world/rubric"
)

// Exhibitor starts the part of a report about rules that failed, and about judges.
func (*definition) Exhibitor() exhibit.Exhibitor { return &exhibitor{failed: map[string]*failures{}} }

// exhibitor collects failures by rule, and ratings.
type exhibitor struct {
	failed map[string]*failures
	judges rubric.Report
}

// failures is where a rule failed.
type failures struct {
	episodes, scores int
	example          failedRule // of the first episode
	episode          int
}

// Add takes the ratings of an episode, and the rules that failed in it.
func (e *exhibitor) Add(p world.Played) {
	var data Data
	var params Params
	raw, _ := p.Outcome.Data.(json.RawMessage)
	if p.Outcome.Failed != "" || json.Unmarshal(raw, &data) != nil || json.Unmarshal(p.Spec.Params, &params) != nil {
		return
	}
	e.fail(params.Scored.Episode, data.Failed)
	e.judges.Add(p.Unit, params.Scored.Episode, params.Questions, data.Ratings)
}

// fail counts the rules that failed in an episode.
func (e *exhibitor) fail(episode int, all []failedRule) {
	last := map[string]bool{}
	for _, one := range all {
		f := e.failed[one.Rule]
		if f == nil {
			f = &failures{example: one, episode: episode}
			e.failed[one.Rule] = f
		}
		f.scores++
		if !last[one.Rule] {
			f.episodes++
			last[one.Rule] = true
		}
	}
}

// Exhibits returns which rules failed, and what can be said about judges.
func (e *exhibitor) Exhibits() []exhibit.Exhibit {
	failed := exhibit.Grid{Columns: []string{"rule", "episodes", "scores", "example", "reason"}}
	for _, n := range slices.Sorted(maps.Keys(e.failed)) {
		f := e.failed[n]
		failed.Rows = append(failed.Rows, []any{n, f.episodes, f.scores, strings.TrimSpace(fmt.Sprintf("episode %d %s", f.episode, f.example.Seat)), f.example.Reason})
	}
	page := exhibit.Page{}
	page.Add("failed-rules", "Rules that failed", "Where a rule failed, its score is missing: in how many episodes, how many scores, and the first reason.", failed)
	e.judges.AddTo(&page)
	return page.All
}
