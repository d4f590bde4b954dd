package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/price"
	"parley/internal/run/planfile"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/world"
)

// TestCheckRefusesTokens: a check refuses a plan that trains on token ids which its servers do not return.
func TestCheckRefusesTokens(t *testing.T) {
	t.Parallel()
	asking := world.Define(simple(func(t *world.Table) world.Outcome {
		t.One(world.Call{Seat: "one", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}, TokenIDs: true}})
		return world.Outcome{}
	}))
	lab := `providers: {lab: {dialect: openai, base_url: "http://127.0.0.1:1/v1"%s}}`
	for _, c := range []struct{ agent, providers, want string }{
		{"lab/any", fmt.Sprintf(lab, ""), "plan.yaml:3:13: agents.a: the plan asks lab/any for token ids"},
		{"lab/any", fmt.Sprintf(lab, `, capabilities: [{match: "lab/*", token_ids: true}]`), ""},
		{"sim/small", "", ""},
		{"vllm/any", "", ""},
	} {
		plan, err := planfile.Parse("plan.yaml", fmt.Appendf(nil, "kind: test\nepisodes: 2\nagents: {a: %s}\n%s\n", c.agent, c.providers), []world.Kind{asking}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = (Config{Plan: plan}).Run(t.Context()); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %q: %v", c.agent, c.providers, err)
		}
	}
}

// TestTrains: where agents are marked as trainable, the others may have no token ids.
func TestTrains(t *testing.T) {
	t.Parallel()
	marked := &trial{plan: &planfile.Plan{Agents: []world.Agent{{Name: "a", Trainable: true}, {Name: "b"}}}}
	none := &trial{plan: &planfile.Plan{Agents: []world.Agent{{Name: "a"}}}}
	if !marked.trains("a") || marked.trains("b") || !none.trains("a") {
		t.Error("only the marked agent is trained, or all if none is marked")
	}
}

// TestCheckWarnsOfCopies: a check warns of episodes that cannot differ, and only of those.
func TestCheckWarnsOfCopies(t *testing.T) {
	t.Parallel()
	asking := func(dealt bool) world.Kind {
		k := simple(func(t *world.Table) world.Outcome {
			text := "what?"
			if dealt {
				text = fmt.Sprint("what of ", t.Rand().Uint64())
			}
			r := t.One(world.Call{Seat: "one", Label: "x", Ask: llm.Request{Messages: []llm.Message{llm.User(text)}}})
			return world.Outcome{Scores: []world.Score{{Name: "length", Seat: "one", Value: float64(len(r.Text))}}}
		})
		k.Players = map[string]world.Bot{"mute": func(world.Call) world.Reply { return world.Reply{Text: "no"} }}
		return world.Define(k)
	}
	for _, c := range []struct {
		name, agent string
		episodes    int
		dealt       bool
		want        string
	}{
		{"temperature 0", "{model: sim/small, temperature: 0}", 20, false, "up to 20 episodes would be copies of one play and count as one observation. Temperature is 0 for a, and test asks the same for every deal; set agents.NAME.temperature above 0"},
		{"a seed", "{model: sim/small, seed: 4}", 20, false, "A seed is set for a"},
		{"a bot", "{bot: mute}", 20, false, "All agents are bots"},
		{"chance in the deal", "{model: sim/small, temperature: 0}", 20, true, ""},
		{"chance in the answers", "{model: sim/small, temperature: 1}", 20, false, ""},
		{"nobody says", "sim/small", 20, false, ""},
		{"one episode", "{model: sim/small, temperature: 0}", 1, false, ""},
		{"a bot and chance in the deal", "{bot: mute}", 20, true, ""},
	} {
		e := estimated(t, []world.Kind{asking(c.dealt)}, fmt.Sprintf("kind: test\nepisodes: %d\nagents: {a: %s}\n", c.episodes, c.agent), Config{})
		got := strings.Join(e.Warnings, "\n")
		if !strings.Contains(got, c.want) || (c.want == "") == strings.Contains(got, "copies") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// planned returns the outlook of a plan, with the number of cells and of episodes for each cell,
// and a sample of about size episodes.
func planned(cells, episodes, size int, seed uint64) *outlook {
	o := &outlook{low: cells * episodes, high: cells * episodes}
	var specs []world.Spec
	for deal := range episodes {
		for c := range cells {
			specs = append(specs, world.Spec{Cell: strconv.Itoa(c), Deal: deal})
		}
	}
	o.specs = world.List(specs...)
	o.cells = cellsOf(o.specs)
	o.draw(size, rand.New(rand.NewPCG(seed, 1)))
	return o
}

// TestDraw: the sample has every cell, or random ones if there are too many. It has no episode
// twice, and the same seed draws the same sample.
func TestDraw(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cells, episodes, size, want int }{
		{1, 1, 32, minSample}, {1, 20, 32, 20}, {1, 500, 32, 32}, {3, 100, 32, 33}, {20, 1, 32, 40}, {100, 1, 32, 64}, {1, 10, 2, 2}, {0, 0, 32, 0},
	} {
		o := planned(c.cells, c.episodes, c.size, 1)
		seen := map[string]bool{}
		for _, s := range o.sample {
			seen[fmt.Sprint(s.Cell, " ", s.Deal)] = true
		}
		if len(o.sample) != c.want || len(seen) != c.want || len(o.parts) != min(c.cells, c.size) {
			t.Errorf("%+v: %d episodes, %d of them different, %d cells", c, len(o.sample), len(seen), len(o.parts))
		}
		same := func(a, b world.Spec) bool { return a.Cell == b.Cell && a.Deal == b.Deal }
		if again := planned(c.cells, c.episodes, c.size, 1); !slices.EqualFunc(o.sample, again.sample, same) {
			t.Errorf("%+v: %v, then %v", c, o.sample, again.sample)
		}
		if other := planned(c.cells, c.episodes, c.size, 2); c.cells == 100 && slices.EqualFunc(o.sample, other.sample, same) {
			t.Errorf("%+v: another seed draws the same", c)
		}
	}
}

// TestDrawCovers: over many plans and samples, the interval contains the total of the plan
// as often as its confidence says, and its middle is right on average, even if the costs of cells
// differ greatly and in a pattern. If the sample has few of many cells with skewed costs, Student's
// interval contains the total a little less often than 95%. If the plan has exactly the episodes of
// the sample, it does so more often: the interval allows for different answers. With PARLEY_SWEEP, which .ci/run kills sets, there are
// four times as many plans, and less room for chance.
func TestDrawCovers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it computes: there is nothing for the race detector")
	}
	runs, room := 300, 0.0126 // a standard error
	if os.Getenv("PARLEY_SWEEP") != "" {
		runs, room = 1200, 0
	}
	for _, c := range []struct {
		name            string
		cells, episodes int
		fixed           bool
		low, high       float64
	}{
		{"one cell", 1, 200, false, 0.93, 0.97},
		{"few cells", 6, 40, false, 0.93, 0.97},
		{"two of each cell", 32, 20, false, 0.93, 0.97},
		{"more cells than are tried", 132, 8, false, 0.92, 0.97},
		{"one episode of each cell", 400, 1, false, 0.92, 0.97},
		{"the same episodes", 32, 20, true, 0.94, 0.99},
		{"the same episodes of more cells", 132, 8, true, 0.92, 0.98},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(7, uint64(c.cells)))
			cost := func(cell int) float64 { // each fourth cell costs ten times as much
				mean := 10 + float64(cell%12)
				if cell%4 == 0 {
					mean *= 10
				}
				return mean * (0.7 + 0.6*r.Float64())
			}
			truth := map[[2]int]float64{}
			held, sum, middle := 0.0, 0.0, 0.0
			for run := range runs {
				o := planned(c.cells, c.episodes, 32, uint64(run))
				total := 0.0
				for i, s := range o.specs.All() {
					key := [2]int{i % c.cells, s.Deal}
					if run == 0 || !c.fixed {
						truth[key] = cost(key[0])
					}
					total += truth[key]
				}
				got := make([]float64, len(o.sample))
				for i, s := range o.sample {
					cell, _ := strconv.Atoi(s.Cell)
					got[i] = cost(cell)
					if c.fixed {
						got[i] = truth[[2]int{cell, s.Deal}]
					}
				}
				a := o.amount(o.parts, got)
				if a.Total.Holds(total) {
					held++
				}
				sum += total
				middle += (a.Total.Low + a.Total.High) / 2
			}
			if share := held / float64(runs); share < c.low-2*room || share > c.high+2*room {
				t.Errorf("%.3f of the intervals contain the total, want %v to %v, and %v of room", share, c.low, c.high, 2*room)
			}
			if bias := middle/sum - 1; math.Abs(bias) > 0.015+room {
				t.Errorf("the estimate is off by %.3f on average", bias)
			}
		})
	}
}

// TestCheckRefusesFiles: a check refuses a plan whose messages hold files that a model does not take.
func TestCheckRefusesFiles(t *testing.T) {
	t.Parallel()
	files := map[string]*llm.File{
		"pdf": {Name: "paper.pdf", MediaType: llm.MediaPDF, Data: []byte(llmtest.PDF)},
		"wav": {MediaType: llm.MediaWAV, Data: []byte(llmtest.WAV)},
	}
	for _, c := range []struct{ agent, file, providers, want string }{
		{"deepseek/deepseek-chat", "pdf", "", "agents.a: messages[0].content[1], document paper.pdf"},
		{"anthropic/claude-opus-4-6", "pdf", "", ""},
		{"anthropic/claude-opus-4-6", "wav", "", "cannot be sent to anthropic/claude-opus-4-6: the model takes no audio"},
		{"gemini/gemini-2.5-flash", "wav", "", ""},
		{"vllm/any", "wav", `providers: {vllm: {capabilities: [{match: "vllm/*", no_audio: true}]}}`, "takes no audio"},
		{"sim/small", "wav", "", ""},
	} {
		asking := world.Define(simple(func(t *world.Table) world.Outcome {
			t.One(world.Call{Seat: "one", Ask: llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{{Text: "?"}, {File: files[c.file]}}}}}})
			return world.Outcome{}
		}))
		plan, err := planfile.Parse("plan.yaml", fmt.Appendf(nil, "kind: test\nepisodes: 2\nagents: {a: %s}\n%s\n", c.agent, c.providers), []world.Kind{asking}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = (Config{Plan: plan}).Run(t.Context()); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v", c.agent, c.file, err)
		}
	}
}

// TestMaxCall: the most that a call can cost is what a run sets aside for it, also for files and stored prompts.
func TestMaxCall(t *testing.T) {
	t.Parallel()
	prices, err := price.Read(strings.NewReader(`{"models":{"gemini/m":{"input":1,"output":1,"audio":3,"context":100000}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	p, _ := prices.Find("gemini/m")
	for name, part := range map[string]llm.Part{
		"text":  {Text: "?"},
		"pdf":   {File: &llm.File{MediaType: llm.MediaPDF, Data: []byte(llmtest.PDF)}},
		"sound": {File: &llm.File{MediaType: llm.MediaWAV, Data: []byte(llmtest.WAV)}},
	} {
		for _, more := range []string{"", ", cached_content: cachedContents/1"} {
			asking := world.Define(simple(func(t *world.Table) world.Outcome {
				t.One(world.Call{Seat: "one", Ask: llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{part}}}}})
				return world.Outcome{}
			}))
			plan, err := planfile.Parse("plan.yaml", fmt.Appendf(nil, "kind: test\nepisodes: 2\nbudget: 9\nagents: {a: {model: gemini/m, max_tokens: 10%s}}\n", more), []world.Kind{asking}, nil)
			if err != nil {
				t.Fatal(err)
			}
			e, err := (Config{Plan: plan, Prices: prices}).Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			req := plan.Agents[0].Request(llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{part}}}})
			if want := budget.Worst(p, &req, false); e.Budget.Call != want {
				t.Errorf("%s%s: a call can cost %v, want %v", name, more, e.Budget.Call, want)
			}
			if least := p.WithAudio().Cost(llm.Usage{Input: 320}, false); name == "sound" && llm.Dollars(e.Cost.Episode.Mean) < least {
				t.Errorf("%s%s: an episode costs %v, want at least %v", name, more, e.Cost.Episode.Mean, least)
			}
		}
	}
}
