package evolve

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"testing"

	"go.uber.org/goleak"

	"parley/llm"
	"parley/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab plays a whole evolution without an engine, in order.
type lab struct {
	t       testing.TB
	model   string
	seed    uint64
	answer  func(c world.Call, place string) world.Reply // default: the stand-in
	stages  [][]world.Played
	solved  int // calls of solvers
	asked   map[asking]int
	verdict Verdict
}

// asking is a prompt and a problem.
type asking struct{ prompt, question string }

// paramsOf returns the defaults with the given params, as a plan file sets them.
func paramsOf(t testing.TB, params string) *Params {
	t.Helper()
	p := definition{}.Defaults()
	if err := json.Unmarshal([]byte(params), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// run plays an evolution of params.
func (l *lab) run(params string) *lab {
	l.t.Helper()
	if l.answer == nil {
		l.answer = l.sim
	}
	plan, err := definition{}.Plan(paramsOf(l.t, params), world.Spec{Kind: "evolve", Lineup: map[string]string{playSolver: "a"}}, l.seed)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.follow(plan)
}

// follow plays a plan to its end.
func (l *lab) follow(plan world.Plan) *lab {
	l.t.Helper()
	l.asked = map[asking]int{}
	episode := 0
	var last []world.Played
	for {
		specs := plan.Next(last)
		if specs.Len() == 0 {
			return l
		}
		last = nil
		for _, s := range specs.All() {
			o := l.episode(s, episode)
			last = append(last, world.Played{Episode: episode, Spec: s, Outcome: o})
			episode++
		}
		if l.stages = append(l.stages, last); len(l.stages) > 5000 {
			l.t.Fatal("no end")
		}
	}
}

// episode plays one spec. Its params and its data pass through JSON.
func (l *lab) episode(s world.Spec, number int) world.Outcome {
	l.t.Helper()
	p := definition{}.Defaults()
	if err := json.Unmarshal(s.Params, p); err != nil {
		l.t.Fatal(err)
	}
	w, err := definition{}.World(p, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	strand := world.Begin(w, world.Deal{Seed: l.seed, Number: s.Deal})
	defer strand.Stop()
	turn := strand.Next(nil)
	for !turn.Done {
		replies := make([]world.Reply, len(turn.Calls))
		for i, c := range turn.Calls {
			l.note(p, c, i)
			replies[i] = l.answer(c, fmt.Sprint(number, turn.Number, i))
		}
		turn = strand.Next(replies)
	}
	if turn.Panic != "" {
		l.t.Fatal(turn.Panic, turn.Stack)
	}
	if v, ok := turn.Outcome.Data.(Verdict); ok {
		l.verdict = v
	}
	raw, err := json.Marshal(turn.Outcome.Data)
	if err != nil {
		l.t.Fatal(err)
	}
	turn.Outcome.Data = json.RawMessage(raw)
	return turn.Outcome
}

// note counts the calls of solvers.
func (l *lab) note(p *Params, c world.Call, i int) {
	if c.Label != "solve" {
		return
	}
	l.solved++
	t := p.Episode.Trial
	l.asked[asking{t.Text, t.Problems[i/(p.Solvers*p.Samples)].Question}]++
}

// sim answers like the simulated provider.
func (l *lab) sim(c world.Call, place string) world.Reply {
	h := fnv.New64a()
	_, _ = h.Write([]byte(fmt.Sprint(l.seed, place)))
	for _, m := range c.Ask.Messages {
		_, _ = h.Write([]byte(m.Text()))
	}
	model := l.model
	if model == "" {
		model = "solver"
	}
	text, ok := playStandin(model, &c.Ask, h.Sum64())
	if !ok {
		l.t.Fatalf("the stand-in does not answer %+v", c.Ask.Messages)
	}
	if c.Ask.Schema != nil {
		return world.Reply{Text: text, JSON: json.RawMessage(text), Finish: llm.FinishStop}
	}
	return world.Reply{Text: text, Finish: llm.FinishStop}
}
