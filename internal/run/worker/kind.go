package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"parley/llm"
	"parley/world"
)

// definition makes the definition of the kind that the first worker describes.
func (p *Pool) definition() (*definition, error) {
	said := p.first.said
	d := &definition{pool: p, checked: map[string]*answer{}}
	d.about = world.About{Name: p.Name, Version: said.Version, Doc: said.Doc}
	if err := d.about.Check(); err != nil {
		return nil, err
	}
	var err error
	if d.params, err = newParams(said.Params); err != nil {
		return nil, err
	}
	switch said.Durable {
	case "turn":
	case durableEpisode:
		d.restarts = true
	default:
		return nil, fmt.Errorf("durable is %q: want turn or episode", said.Durable)
	}
	return d, nil
}

// kind makes the kind that the first worker describes.
func (p *Pool) kind() (world.Kind, error) {
	d, err := p.definition()
	if err != nil {
		return world.Kind{}, err
	}
	if p.first.said.StandIn {
		return world.Define(&simulated{d}), nil
	}
	return world.Define(d), nil
}

// durableEpisode means that an unfinished episode begins again, since it cannot be played a second time.
const durableEpisode = "episode"

// definition is a kind whose worlds are in workers.
type definition struct {
	pool     *Pool
	about    world.About
	params   *shape
	restarts bool
	played   func(episode int) (json.RawMessage, []string, error) // of a scorer: an episode that is scored, and its seats

	mu      sync.Mutex
	checked map[string]*answer // what workers say about params, by their JSON
}

// maxChecked limits how many params are remembered.
const maxChecked = 10_000

// About describes the kind.
func (d *definition) About() world.About { return d.about }

// Defaults returns params as the class declares them.
func (d *definition) Defaults() *workerParams { return d.params.Defaults() }

// Restarts reports whether the world says that it cannot be played again.
func (d *definition) Restarts() bool { return d.restarts }

// Seats asks a worker to check params.
func (d *definition) Seats(p *workerParams) ([]string, error) {
	a, err := d.check(p)
	if err != nil {
		return nil, err
	}
	return a.Seats, nil
}

// check asks a worker about params.
func (d *definition) check(p *workerParams) (*answer, error) {
	raw, _, err := d.own(p)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	a, known := d.checked[string(raw)]
	d.mu.Unlock()
	if !known {
		if a, err = d.pool.ask(context.Background(), &request{Op: "seats", Params: raw}); err != nil {
			return nil, fmt.Errorf("%s: %w", d.about.Name, err)
		}
		d.mu.Lock()
		if len(d.checked) < maxChecked {
			d.checked[string(raw)] = a
		}
		d.mu.Unlock()
	}
	switch err := complaint(a.Error, d.about.Name); {
	case err != nil:
		return nil, err
	case len(a.Seats) == 0 && d.played == nil:
		return nil, errors.New("the world has no seats: its method seats returns at least one")
	}
	return a, nil
}

// Measures lists the scores that the class declares.
func (d *definition) Measures(p *workerParams) []world.Measure {
	a, err := d.check(p)
	if err != nil {
		return nil // Seats reports it
	}
	return a.Measures
}

// World makes the world of one episode.
func (d *definition) World(p *workerParams, lineup world.Lineup) (world.World, error) {
	a, err := d.check(p)
	if err != nil {
		return nil, err
	}
	raw, scored, err := d.own(p)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string, len(lineup))
	for seat, agent := range lineup {
		names[seat] = agent.Name
	}
	e := &episode{
		seats: a.Seats, params: raw, lineup: names, talks: map[int][]llm.Message{},
		exchange: exchange{pool: d.pool, key: d.pool.name("e")},
	}
	if d.played != nil {
		e.played = func() (json.RawMessage, []string, error) { return d.played(scored) }
	}
	return e, nil
}

// own returns the params of the class as JSON and, for a scorer, the episode that is scored.
func (d *definition) own(p *workerParams) (raw json.RawMessage, scored int, err error) {
	if d.played == nil {
		raw, err = json.Marshal(p)
		return raw, 0, err
	}
	own, s, err := d.split(p)
	if err == nil {
		raw, err = json.Marshal(own)
	}
	return raw, s.Episode, err
}

// simulated is a definition whose class answers for the simulated provider.
type simulated struct{ *definition }

// StandIn asks a worker.
func (s *simulated) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return s.pool.standIn(model, req, seed)
}

// standIn asks a worker to answer a request, if the class can.
func (p *Pool) standIn(model string, req *llm.Request, seed uint64) (string, bool) {
	a := p.stoodIn(model, req, seed)
	if a == nil || a.Text == nil {
		return "", false
	}
	return *a.Text, true
}

// stoodIn returns the answer of a class to a request, or nil.
func (p *Pool) stoodIn(model string, req *llm.Request, seed uint64) *answer {
	if !p.first.said.StandIn {
		return nil
	}
	a, err := p.ask(context.Background(), &request{Op: "answer", Model: model, Request: req, Seed: strconv.FormatUint(seed, 10)})
	if err != nil || a.Error != nil {
		return nil
	}
	return a
}
