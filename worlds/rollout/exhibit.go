// Part exhibit is the part of a report that is special to rollouts: tables and charts of rewards, groups,
// lengths and times.
//
// It promises that data of any form is accepted: a run file may come from anywhere. It is not for a single
// episode: package rules writes its story.

package rollout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/world"
	"parley/worlds/rollout/rules"
)

// exhibits collects the episodes of a report. The episodes of a group have one task and are not independent,
// so every mean is taken by group.
type exhibits struct {
	episodes []*seen
	envs     []string // these three in order of appearance
	players  []player
	groups   []*group
	byName   map[string]int
	byNumber map[int]*seen  // episodes whose rewards a judgement gives
	failed   map[string]int // by reason
	nobody   int            // rewards
}

// seen is an episode.
type seen struct {
	number, group int
	env           string
	stop          rules.Stop
	steps, tries  int
	got           []got
	took          world.Took
	unit          world.Unit
}

// got is the reward of one player.
type got struct {
	player  player
	reward  float64
	version float64 // of the weights that answered last
	known   bool    // whether there is one
}

// player is a seat of an environment and the agent in it.
type player struct{ env, seat, agent string }

// group is the episodes of one task.
type group struct {
	name, env string
	planned   int
	members   []*seen
	failures  int
}

// newExhibit returns an empty report.
func newExhibit() world.Exhibitor { return &exhibits{} }

// Add adds an episode.
func (g *exhibits) Add(p world.Played) {
	raw, _ := p.Outcome.Data.(json.RawMessage)
	var d rules.Data
	var params struct {
		Group int
		Task  *rules.Task
	}
	if json.Unmarshal(raw, &d) != nil || json.Unmarshal(p.Spec.Params, &params) != nil {
		return
	}
	if d.Judgement != nil {
		g.judged(p, *d.Judgement)
	}
	if d.Stop == "" {
		return
	}
	e := &seen{number: p.Episode, env: d.Env, stop: d.Stop, steps: d.Steps, tries: d.Tries, took: p.Took, unit: p.Unit}
	if !slices.Contains(g.envs, d.Env) {
		g.envs = append(g.envs, d.Env)
	}
	planned := max(1, params.Group)
	if params.Task != nil && params.Group == 0 {
		planned = params.Task.Size
	}
	name, _ := rules.GroupOf(p.Spec) // the params were read above
	e.group = g.groupNamed(name, d.Env, planned)
	g.episodes = append(g.episodes, e)
	of := g.groups[e.group]
	of.members = append(of.members, e)
	g.nobody += d.Unmatched
	if p.Outcome.Failed != "" {
		of.failures++
		g.fail(p.Outcome.Failed)
		return
	}
	if e.got = g.paid(p, d); len(e.got) == 0 && d.Record != "" {
		if g.byNumber == nil {
			g.byNumber = map[int]*seen{}
		}
		g.byNumber[e.number] = e
	}
}

func (g *exhibits) groupNamed(name, env string, planned int) int {
	if i, ok := g.byName[name]; ok {
		return i
	}
	if g.byName == nil {
		g.byName = map[string]int{}
	}
	g.byName[name] = len(g.groups)
	g.groups = append(g.groups, &group{name: name, env: env, planned: planned})
	return len(g.groups) - 1
}

// fail counts a failure by its reason, without the step and the number of tries.
func (g *exhibits) fail(why string) {
	if g.failed == nil {
		g.failed = map[string]int{}
	}
	why, _, _ = strings.Cut(why, " (")
	parts := strings.Split(why, ": ")
	for i, part := range parts {
		if rest, ok := strings.CutPrefix(part, "step "); ok && strings.Trim(rest, "0123456789") == "" {
			parts[i] = "step"
		}
	}
	g.failed[strings.Join(parts, ": ")]++
}

// judged gives episodes the rewards of a judge that compared them. They were added before.
func (g *exhibits) judged(p world.Played, j rules.Ordered) {
	if p.Outcome.Failed != "" {
		g.fail(p.Outcome.Failed)
		return
	}
	for _, v := range j.Verdicts {
		e := g.byNumber[v.Episode]
		if e == nil || math.IsNaN(v.Reward) || math.IsInf(v.Reward, 0) {
			continue
		}
		e.got = append(e.got, got{player: g.player(e.env, v.Seat, p.Spec.Lineup[v.Seat]), reward: v.Reward})
	}
}

// player returns a player, who is listed from now on.
func (g *exhibits) player(env, seat, agent string) player {
	who := player{env: env, seat: seat, agent: agent}
	if !slices.Contains(g.players, who) {
		g.players = append(g.players, who)
	}
	return who
}

// paid returns the rewards of the players of an episode.
func (g *exhibits) paid(p world.Played, d rules.Data) (out []got) {
	versions := map[string]string{}
	for _, r := range d.Rows {
		versions[r.Seat] = r.Weights
	}
	for _, s := range p.Outcome.Scores {
		if s.Name != "reward" || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			continue
		}
		who := g.player(d.Env, s.Seat, p.Spec.Lineup[s.Seat])
		one := got{player: who, reward: s.Value}
		if v, err := strconv.ParseFloat(versions[s.Seat], 64); err == nil {
			one.version, one.known = v, true
		}
		out = append(out, one)
	}
	return out
}

// label returns the shortest unambiguous name of a player.
func (g *exhibits) label(p player) string {
	seats, agents := map[string]bool{}, map[string]bool{}
	for _, q := range g.players {
		seats[q.seat], agents[q.agent] = true, true
	}
	label := p.env
	if len(seats) > 1 {
		label += " · " + p.seat
	}
	if len(agents) > len(seats) {
		label += " · " + p.agent
	}
	return label
}

// sample collects a number of every episode that has it.
func sample(of []*seen, number func(*seen) (float64, bool)) *world.Sample {
	s := &world.Sample{}
	for _, e := range of {
		if x, ok := number(e); ok {
			s.Add(e.unit, x)
		}
	}
	return s
}

// reward returns a player's reward in an episode.
func reward(who player) func(*seen) (float64, bool) {
	return func(e *seen) (float64, bool) {
		i := slices.IndexFunc(e.got, func(o got) bool { return o.player == who })
		if i < 0 {
			return 0, false
		}
		return e.got[i].reward, true
	}
}

// of returns the episodes of an environment.
func (g *exhibits) of(env string) (out []*seen) {
	for _, e := range g.episodes {
		if e.env == env || env == allEnvs {
			out = append(out, e)
		}
	}
	return out
}

// Exhibits returns the tables and charts.
func (g *exhibits) Exhibits() []world.Exhibit {
	if len(g.episodes) == 0 {
		return nil
	}
	var out []world.Exhibit
	add := func(name, title, caption string, show world.Show) {
		if show != nil {
			out = append(out, world.Exhibit{Name: "rollout-" + name, Title: title, Caption: caption, Show: show})
		}
	}
	add("rewards", "Rewards", "What an episode paid in all, with 95% intervals. Episodes of a group are of one task, and so intervals are by group.", g.showRewards())
	add("curve", "Reward over the run", "The mean reward of episodes, in the order in which they were planned, with 95% bands by group.", g.showCurve())
	add("versions", "Reward by version of the weights", "By the version that gave an episode's last answer.", g.showVersions())
	add("distribution", "Distribution of rewards", "", g.showDistribution())
	add("stops", "Why episodes ended", "", g.showStops())
	add("lengths", "Lengths", "Steps that the environment took, and tokens of all answers and prompts of an episode.", g.showLengths())
	add("steps", "Distribution of steps", "", g.showSteps())
	add("groups", "Groups", "Complete: every planned episode ended, and none failed. Short: some failed, and the group is closed without them. Open: some have not ended. Equal: every episode was paid the same, which teaches nothing between them. Spread: what lies between the best and the worst of a group.", g.showGroups())
	add("group-means", "Distribution of groups", "", g.showGroupMeans())
	add("group-rewards", "Rewards by group", fmt.Sprintf("The groups that pay most unlike the others: at most %d of them, those first that differ most.", maxGroups), g.showGroupRewards())
	add("trouble", "What went wrong", "Failed episodes are in no mean above.", g.showTrouble())
	add("time", "Where the time goes", "Of the time from an episode's first request to its end. The rest is recording, and waiting for a core.", g.showTime())
	add("open", "Environments in use", "Episodes that had an environment or were getting one, over the time played.", g.showOpen())
	return out
}

func (g *exhibits) showRewards() world.Show {
	if len(g.players) == 0 {
		return nil
	}
	t := world.Grid{Columns: []string{"player", "agent", "reward", "episodes", "groups", "lowest", "highest"}}
	for _, who := range g.players {
		s := sample(g.episodes, reward(who))
		low, high := g.extremes(who)
		t.Rows = append(t.Rows, []any{g.label(who), who.agent, s, s.Episodes(), s.Estimate(0.95).N, low, high})
	}
	return t
}

func (g *exhibits) extremes(who player) (low, high float64) {
	first := true
	for _, e := range g.episodes {
		if x, ok := reward(who)(e); ok {
			if first {
				low, high = x, x
			}
			first, low, high = false, min(low, x), max(high, x)
		}
	}
	return low, high
}

func (g *exhibits) showLengths() world.Show {
	t := world.Grid{Columns: []string{"environment", "steps", "longest", "answer tokens", "prompt tokens", "seconds"}}
	for _, env := range g.envs {
		of := g.of(env)
		longest := slices.MaxFunc(of, func(a, b *seen) int { return cmp.Compare(a.steps, b.steps) }).steps
		number := func(f func(*seen) float64) *world.Sample {
			s := sample(of, func(e *seen) (float64, bool) { return f(e), e.stop != rules.StopFailed })
			s.Bounds = world.AtLeast0()
			return s
		}
		t.Rows = append(t.Rows, []any{
			env, number(func(e *seen) float64 { return float64(e.steps) }), longest, number(func(e *seen) float64 { return float64(e.took.Output) }),
			number(func(e *seen) float64 { return float64(e.took.Input) }), number(func(e *seen) float64 { return e.took.Ended - e.took.Began }),
		})
	}
	return t
}

// showTrouble lists failures and retries.
func (g *exhibits) showTrouble() world.Show {
	t := world.Grid{Columns: []string{"what", "count", "of"}}
	add := func(what string, n int, of string) {
		if n > 0 {
			t.Rows = append(t.Rows, []any{what, n, of})
		}
	}
	for _, why := range slices.SortedFunc(maps.Keys(g.failed), func(a, b string) int {
		return cmp.Or(cmp.Compare(g.failed[b], g.failed[a]), cmp.Compare(a, b))
	}) {
		add("failed: "+why, g.failed[why], "episodes")
	}
	lost, again, cut := 0, 0, 0
	for _, e := range g.episodes {
		if e.tries > 1 {
			lost++
			again += e.tries - 1
		}
		if e.took.Attempt > 0 {
			cut++
		}
	}
	add("lost their environment and began again from a reset", lost, "episodes")
	add("resets after an environment was lost", again, "tries")
	add("began again since the run was cut off in the middle of them", cut, "episodes")
	add("rewards for agents who had done nothing", g.nobody, "rewards")
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}
