package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"parley/internal/run/results"
	"parley/llm"
	"parley/world"
)

// scoredField describes the param.
const scoredField = `{"name":"scored","type":{"fields":[{"name":"run","type":"str","default":""},{"name":"episodes","type":"str","default":""},` +
	`{"name":"measures","type":{"list":"any"},"default":[]},{"name":"episode","type":"int","default":0}]},"default":{},"doc":"What is scored."}`

// OpenScorer starts a worker with the class of a scorer and returns the kind whose episodes score episodes of another run.
// played returns an episode of that run as JSON, and its seats.
func OpenScorer(c Config, played func(episode int) (json.RawMessage, []string, error)) (*Pool, world.Kind, error) {
	p, err := open(c, Scorer)
	if err != nil {
		return nil, world.Kind{}, err
	}
	var field paramsField
	if err = json.Unmarshal([]byte(scoredField), &field); err == nil {
		p.first.said.Params = append(p.first.said.Params, field)
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
func (s *scorer) Models(*workerParams) map[string]string {
	return maps.Clone(s.pool.first.said.Judges)
}

// StandIn asks the class to answer for the simulated provider.
func (s *scorer) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return s.pool.standIn(model, req, seed)
}

// Plan makes an episode for each one that is scored.
func (s *scorer) Plan(p *workerParams, cell world.Spec, _ uint64) (world.Plan, error) {
	own, of, err := s.split(p)
	if err != nil {
		return nil, err
	}
	numbers, err := of.Numbers()
	if err != nil {
		return nil, err
	}
	specs := make([]world.Spec, len(numbers))
	for i, n := range numbers {
		raw, err := json.Marshal(of.Of(n))
		if err != nil {
			return nil, err
		}
		own[results.Param] = raw
		specs[i] = cell
		specs[i].Deal = n
		if specs[i].Params, err = json.Marshal(own); err != nil {
			return nil, err
		}
	}
	return world.List(specs...), nil
}

// Forecast returns nothing: the plan is its first stage.
func (*scorer) Forecast(*workerParams, world.Spec, uint64) ([]world.Part, error) { return nil, nil }

// split returns the scorer's own params, and what is scored.
func (*definition) split(p *workerParams) (own map[string]json.RawMessage, s results.Scored, err error) {
	raw, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(raw, &own)
	}
	if err == nil {
		err = json.Unmarshal(own[results.Param], &s)
	}
	delete(own, results.Param)
	return own, s, err
}
