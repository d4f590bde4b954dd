package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"parley/internal/ask/provider"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/files"
	"parley/internal/read/score"
	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
)

// openRubric makes the kind of rubrics known, with the run whose episodes are scored.
func (s *State) openRubric(ctx context.Context, run string) (*scorer, error) {
	from, err := s.openScored(ctx, run)
	if err != nil {
		return nil, err
	}
	kind := score.RubricKind(from.played, from.of)
	s.Kinds = append(slices.Clip(s.Kinds), kind)
	return &scorer{kind: kind, head: from.head}, nil
}

// rubricPlan returns the plan of a plan file of the kind rubric. It says in a param what is scored.
func (c *scoreCmd) rubricPlan(ctx context.Context, s *State) (*planfile.Plan, error) {
	of, err := s.openRubric(ctx, c.File)
	if err != nil {
		return nil, err
	}
	if _, err := files.Read(ctx, c.With, planfile.MaxSize); err != nil {
		return nil, exit.Usagef("--with: %w; want a plan file of the kind rubric, or a class in Python such as polite.py:Politeness", err)
	}
	file := planfile.Peek(ctx, c.With)
	if file.Kind != score.RubricName {
		return nil, exit.Usagef("%s: kind %q: want a plan file with kind: rubric", c.With, terminal.Safe(file.Kind))
	}
	order := file.Names("params", "questions")
	digest := file.Digest("seed", "params", "agents", "lineup", "episode_budget") // what decides scores
	of.same = func(b *journal.Begun) bool {
		was, in := score.Source(b.Plan)
		return was == digest && slices.Equal(in, order)
	}
	asked, err := json.Marshal(append([]string{}, order...))
	if err != nil {
		return nil, err
	}
	sets := append(c.sets(), "episodes=1", "params.source="+digest, "params.order="+string(asked))
	for _, seat := range slices.Sorted(maps.Keys(c.Judge)) {
		sets = append(sets, fmt.Sprintf("agents.%s.model=%s", seat, c.Judge[seat]), fmt.Sprintf("lineup.%s=%s", seat, seat))
	}
	plan, err := planfile.Load(ctx, c.With, s.Kinds, sets, c.reach())
	if err != nil {
		return nil, exit.AsUsage(err)
	}
	for _, st := range of.head.Stages {
		for i, judge := range plan.Seats {
			if _, taken := st.Specs.At(0).Lineup[judge]; taken {
				return nil, exit.Usagef("%s: params.judges[%d]: %s is a seat of %s: rename the judge", c.With, i, judge, c.File)
			}
		}
	}
	if score.Interviews(plan.ParamsJSON) {
		more, err := c.interviewed(plan, of.head.Begun)
		if err != nil {
			return nil, err
		}
		sets = append(sets, more...)
	}
	of.fixed = score.Categorises(plan.ParamsJSON)
	what, err := c.what(ctx, s, of, plan.Kind.Measures(plan.Params))
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	plan, err = planfile.Load(ctx, c.With, s.Kinds, append(sets, "params."+results.ScoredParam+"="+string(raw)), c.reach())
	return plan, exit.AsUsage(err)
}

// interviewTokens is the least limit of tokens that an agent has in an interview. One for short moves would cut off its answers.
const interviewTokens = 1000

// interviewed returns the overrides of a plan file that seat the models of the scored run, where they answer questions themselves.
func (c *scoreCmd) interviewed(plan *planfile.Plan, of *journal.Begun) (sets []string, err error) {
	set := func(key string, value any) {
		raw, cause := json.Marshal(value)
		err = errors.Join(err, cause)
		sets = append(sets, key+"="+string(raw))
	}
	for _, seat := range plan.Seats {
		set(`lineup."`+seat+`"`, plan.Lineup[seat])
	}
	var recorded struct {
		Providers map[string]json.RawMessage `json:"providers"`
		Agents    map[string]map[string]any  `json:"agents"`
	}
	if err := json.Unmarshal(of.Plan, &recorded); err != nil {
		return nil, playError(c.File, err)
	}
	for name, one := range recorded.Providers { // the agents are where they were
		if !slices.ContainsFunc(plan.Providers, func(p provider.Provider) bool { return p.Name == name }) {
			set("providers."+name, one)
		}
	}
	names := []string{}
	for _, a := range of.Agents {
		agent := recorded.Agents[a.Name]
		if a.Model == "" || a.Human() || agent == nil {
			continue
		}
		if slices.ContainsFunc(plan.Agents, func(own world.Agent) bool { return own.Name == a.Name }) {
			return nil, exit.Usagef("%s: agents.%s: %s has an agent of this name, which answers questions: rename the one of the judges", c.With, terminal.Safe(a.Name), c.File)
		}
		delete(agent, "system") // the recorded messages have it
		delete(agent, "trainable")
		if a.MaxTokens > 0 {
			agent["max_tokens"] = max(a.MaxTokens, interviewTokens)
		}
		names = append(names, a.Name)
		set(`agents."`+a.Name+`"`, agent)
		set(`lineup."`+score.InterviewSeat(a.Name)+`"`, a.Name)
	}
	if len(names) == 0 {
		return nil, exit.Usagef("%s: params.questions: the seats of %s have no models: nobody can answer questions with by: seat", c.With, c.File)
	}
	set("params.agents", names)
	return sets, err
}
