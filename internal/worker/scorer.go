package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"parley/internal/worker/params"
	"parley/llm"
	"parley/world"
)

// Scored says which episodes of which run a scorer scores. It is a param of the run of a scorer, beside the scorer's own.
type Scored struct {
	// Run is the id of the run whose episodes are scored.
	Run string `json:"run"`
	// Episodes are the numbers of the episodes, such as 0-99,103.
	Episodes string `json:"episodes"`
	// Measures are the scores that the scorer declares.
	Measures []measure `json:"measures"`
	// Episode is the one that this episode scores.
	Episode int `json:"episode"`
}

// ScoredParam is the name of the param that holds Scored.
const ScoredParam = "scored"

// scoredField describes the param.
const scoredField = `{"name":"scored","type":{"fields":[{"name":"run","type":"str","default":""},{"name":"episodes","type":"str","default":""},` +
	`{"name":"measures","type":{"list":"any"},"default":[]},{"name":"episode","type":"int","default":0}]},"default":{},"doc":"What is scored."}`

// Bounds returns the possible values of the scores, by name.
func (s Scored) Bounds() map[string]world.Bounds {
	out := map[string]world.Bounds{}
	for _, m := range s.Measures {
		out[m.Name] = m.world().Bounds
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

// NewScored says that episodes of a run are scored by measures. The numbers of the episodes are in order.
func NewScored(run string, episodes []int, measures []world.Measure) Scored {
	s := Scored{Run: run, Measures: []measure{}}
	for _, m := range measures {
		one := measure{Name: m.Name}
		if b := m.Bounds; b != world.Anything() {
			one.Low, one.High = &b.Low, &b.High
		}
		s.Measures = append(s.Measures, one)
	}
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
	s.Episodes = strings.Join(parts, ",")
	return s
}

// OpenScorer starts a worker with the class of a scorer and returns the kind whose episodes score episodes of another run.
// played returns an episode of that run as JSON.
func OpenScorer(c Config, played func(episode int) (json.RawMessage, error)) (*Pool, world.Kind, error) {
	p, err := open(c, Scorer)
	if err != nil {
		return nil, world.Kind{}, err
	}
	var scored params.Field
	if err = json.Unmarshal([]byte(scoredField), &scored); err == nil {
		p.first.said.Params = append(p.first.said.Params, scored)
	}
	d, err2 := p.definition()
	if err = errors.Join(err, err2); err != nil {
		return nil, world.Kind{}, errors.Join(fmt.Errorf("%s: %w", c.Name, err), p.Close())
	}
	d.played = played
	return p, world.Define(&scorer{d}), nil
}

// scorer is the kind of a scorer.
type scorer struct{ *definition }

// Models returns the models of the judges that the class names.
func (s *scorer) Models(*params.Params) map[string]string {
	return maps.Clone(s.pool.first.said.Judges)
}

// StandIn asks the class to answer for the simulated provider.
func (s *scorer) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return s.pool.standIn(model, req, seed)
}

// Plan makes an episode for each one that is scored.
func (s *scorer) Plan(p *params.Params, cell world.Spec, _ uint64) (world.Plan, error) {
	own, scored, err := s.split(p)
	if err != nil {
		return nil, err
	}
	numbers, err := scored.Numbers()
	if err != nil {
		return nil, err
	}
	specs := make([]world.Spec, len(numbers))
	for i, n := range numbers {
		scored.Episode = n
		raw, err := json.Marshal(scored)
		if err != nil {
			return nil, err
		}
		own[ScoredParam] = raw
		specs[i] = cell
		specs[i].Deal = i
		if specs[i].Params, err = json.Marshal(own); err != nil {
			return nil, err
		}
	}
	return world.List(specs...), nil
}

// Forecast returns nothing: the plan is its first stage.
func (*scorer) Forecast(*params.Params, world.Spec, uint64) ([]world.Part, error) { return nil, nil }

// split returns the scorer's own params, and what is scored.
func (*definition) split(p *params.Params) (own map[string]json.RawMessage, s Scored, err error) {
	raw, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(raw, &own)
	}
	if err == nil {
		err = json.Unmarshal(own[ScoredParam], &s)
	}
	delete(own, ScoredParam)
	return own, s, err
}
