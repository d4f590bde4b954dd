package score

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"parley/internal/run/results"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Episode is an episode as scorers get it. docs/reference/worker-protocol.md describes its JSON.
type Episode struct {
	Run     string            `json:"run"`
	Episode int               `json:"episode"`
	Kind    string            `json:"kind"`
	Params  json.RawMessage   `json:"params"`
	Cell    string            `json:"cell,omitempty"`
	Deal    int               `json:"deal"`
	Lineup  map[string]string `json:"lineup"`
	Models  map[string]string `json:"models"` // by agent
	Outcome world.Outcome     `json:"outcome"`
	Notes   []Note            `json:"notes"`
	Calls   []Call            `json:"calls"`
}

// Note is a note of an episode.
type Note struct {
	Turn string `json:"turn"`
	world.Note
}

// Call is a call of an episode with its reply.
type Call struct {
	Turn     string        `json:"turn"`
	Seat     string        `json:"seat"`
	Agent    string        `json:"agent"`
	Label    string        `json:"label,omitempty"`
	Messages []llm.Message `json:"messages,omitempty"`
	Tools    []llm.Tool    `json:"-"` // that the seat could call
	Act      *world.Act    `json:"act,omitempty"`
	Reply    world.Reply   `json:"reply"`
}

// Ended lists the episodes of a run that can be scored: those that ended without a failure.
func Ended(head *journal.Head) (all []int) {
	for e := range head.Ended.All() {
		if e.Outcome.Failed == "" {
			all = append(all, e.Episode)
		}
	}
	return all
}

// Played returns an episode of a run as scorers get it.
func Played(ctx context.Context, j journal.Journal, head *journal.Head, episode int) (*Episode, error) {
	ended, err := head.Ended.Outcome(ctx, j, episode)
	if err != nil {
		return nil, fmt.Errorf("score: episode %d: %w", episode, err)
	}
	entries, err := journal.Episode(ctx, j, episode)
	if err != nil {
		return nil, fmt.Errorf("score: episode %d: %w", episode, err)
	}
	p := &Episode{Run: head.Begun.Run, Episode: episode, Outcome: ended.Outcome, Models: map[string]string{}, Notes: []Note{}, Calls: []Call{}}
	for _, st := range head.Stages {
		if i := episode - st.First; i >= 0 && i < st.Specs.Len() {
			spec := st.Specs.At(i)
			p.Kind, p.Params, p.Cell, p.Deal, p.Lineup = spec.Kind, spec.Params, spec.Cell, spec.Deal, spec.Lineup
		}
	}
	for _, a := range head.Begun.Agents {
		p.Models[a.Name] = a.Model
	}
	for _, turn := range results.Turns(entries, ended.Attempt) {
		if turn.Turned != nil {
			for _, n := range turn.Turned.Notes {
				p.Notes = append(p.Notes, Note{turn.Name(), n})
			}
		}
		for _, r := range turn.Replies {
			c := Call{Turn: turn.Name(), Seat: r.Seat, Agent: r.Agent, Label: r.Label, Act: r.Act, Reply: r.Reply()}
			if r.Request != nil {
				c.Messages, c.Tools = r.Request.Messages, r.Request.Tools
			}
			p.Calls = append(p.Calls, c)
		}
	}
	return p, nil
}

// Seats lists the seats of an episode, in alphabetical order: those of its lineup, and others that were asked or scored.
func (p *Episode) Seats() []string {
	seats := maps.Clone(p.Lineup)
	if seats == nil {
		seats = map[string]string{}
	}
	for _, c := range p.Calls {
		seats[c.Seat] = ""
	}
	for _, s := range p.Outcome.Scores {
		seats[s.Seat] = ""
	}
	delete(seats, "")
	return slices.Sorted(maps.Keys(seats))
}
