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
	"parley/world/exhibit"
	"parley/world/rubric"
	"parley/worlds/rollout/rules"
)

// exhibits is the part of a report that is special to rollouts: tables and charts of rewards, groups, lengths
// and times. It skips data that it cannot read, because a run file may come from anywhere. The episodes of a
// group have one task and are not independent, so every mean is taken by group.
type exhibits struct {
	episodes  []*episode
	envs      []string // these three in order of appearance
	players   []player
	groups    []*group
	byName    map[string]*group
	byNumber  map[int]*episode // episodes whose rewards a judgement gives
	failed    map[string]int   // by reason
	unmatched int              // rewards
	maxSteps  int              // of an episode, unless its params say it
	judges    rubric.Report
}

func newExhibits(maxSteps int) *exhibits {
	return &exhibits{byName: map[string]*group{}, byNumber: map[int]*episode{}, failed: map[string]int{}, maxSteps: maxSteps}
}

// episode is an episode.
type episode struct {
	number       int
	env          string
	stop         rules.Stop
	steps, limit int // it took, and may take
	tries        int
	rewards      []playerReward
	took         world.Took
	unit         world.Unit
}

// playerReward is the reward of one player.
type playerReward struct {
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
	members   []*episode
	failures  int
}

// Add adds an episode.
func (g *exhibits) Add(p world.Played) {
	raw, _ := p.Outcome.Data.(json.RawMessage)
	var d rules.Data
	params := struct {
		Group    int
		MaxSteps int `json:"max_steps"`
		Task     *rules.Task
		Judge    struct{ Questions map[string]rubric.Question }
	}{MaxSteps: g.maxSteps}
	if json.Unmarshal(raw, &d) != nil || json.Unmarshal(p.Spec.Params, &params) != nil {
		return
	}
	g.judges.Add(p.Unit, p.Episode, params.Judge.Questions, d.Ratings)
	if d.Judgement {
		g.addJudgement(p, d.Verdicts)
	}
	if d.Stop == "" {
		return
	}
	e := &episode{number: p.Episode, env: d.Env, stop: d.Stop, steps: d.Steps, limit: params.MaxSteps, tries: d.Tries, took: p.Took, unit: p.Unit}
	exhibit.AddOnce(&g.envs, d.Env)
	planned := max(1, params.Group)
	if params.Task != nil && params.Group == 0 {
		planned = params.Task.Size
	}
	group, _ := rules.Definition{}.TrainingGroup(p.Spec) // the params were read above
	own := g.groupNamed(group.Name, d.Env, planned)
	g.episodes = append(g.episodes, e)
	own.members = append(own.members, e)
	g.unmatched += d.Unmatched
	if p.Outcome.Failed != "" {
		own.failures++
		g.countFailure(p.Outcome.Failed)
		return
	}
	if e.rewards = g.rewardsOf(p, d); len(e.rewards) == 0 && d.Record != "" {
		g.byNumber[e.number] = e
	}
}

func (g *exhibits) groupNamed(name, env string, planned int) *group {
	if g.byName[name] == nil {
		g.byName[name] = &group{name: name, env: env, planned: planned}
		g.groups = append(g.groups, g.byName[name])
	}
	return g.byName[name]
}

// countFailure counts a failure by its reason, without the step and the number of tries.
func (g *exhibits) countFailure(why string) {
	why, _, _ = strings.Cut(why, " (")
	parts := strings.Split(why, ": ")
	for i, part := range parts {
		if rest, ok := strings.CutPrefix(part, "step "); ok && strings.Trim(rest, "0123456789") == "" {
			parts[i] = "step"
		}
	}
	g.failed[strings.Join(parts, ": ")]++
}

// addJudgement gives episodes the rewards of a judge that compared them. They were added before.
func (g *exhibits) addJudgement(p world.Played, verdicts []rules.Verdict) {
	if p.Outcome.Failed != "" {
		g.countFailure(p.Outcome.Failed)
		return
	}
	for _, v := range verdicts {
		e := g.byNumber[v.Episode]
		if e == nil || math.IsNaN(v.Reward) || math.IsInf(v.Reward, 0) {
			continue
		}
		e.rewards = append(e.rewards, playerReward{player: g.player(e.env, v.Seat, p.Spec.Lineup[v.Seat]), reward: v.Reward})
	}
}

// player returns a player, who is listed from now on.
func (g *exhibits) player(env, seat, agent string) player {
	who := player{env: env, seat: seat, agent: agent}
	exhibit.AddOnce(&g.players, who)
	return who
}

// rewardsOf returns the rewards of the players of an episode.
func (g *exhibits) rewardsOf(p world.Played, d rules.Data) (out []playerReward) {
	versions := map[string]string{}
	for _, r := range d.Rows {
		versions[r.Seat] = r.Weights
	}
	for _, s := range p.Outcome.Scores {
		if s.Name != "reward" || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			continue
		}
		who := g.player(d.Env, s.Seat, p.Spec.Lineup[s.Seat])
		one := playerReward{player: who, reward: s.Value}
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
func sample(of []*episode, number func(*episode) (float64, bool)) *world.Sample {
	s := &world.Sample{}
	for _, e := range of {
		if x, ok := number(e); ok {
			s.Add(e.unit, x)
		}
	}
	return s
}

// reward returns a player's reward in an episode.
func reward(who player) func(*episode) (float64, bool) {
	return func(e *episode) (float64, bool) {
		i := slices.IndexFunc(e.rewards, func(o playerReward) bool { return o.player == who })
		if i < 0 {
			return 0, false
		}
		return e.rewards[i].reward, true
	}
}

// rewards returns the rewards of a player in some episodes.
func rewards(who player, of []*episode) (all []float64) {
	for _, e := range of {
		if x, ok := reward(who)(e); ok {
			all = append(all, x)
		}
	}
	return all
}

// episodesIn returns the episodes of an environment.
func (g *exhibits) episodesIn(env string) (out []*episode) {
	for _, e := range g.episodes {
		if e.env == env {
			out = append(out, e)
		}
	}
	return out
}

// Exhibits returns the tables and charts.
func (g *exhibits) Exhibits() []exhibit.Exhibit {
	if len(g.episodes) == 0 {
		return nil
	}
	page := exhibit.Page{Prefix: "rollout-"}
	page.Add("rewards", "Rewards", "What an episode paid in all, with 95% intervals. Episodes of a group are of one task, and so intervals are by group.", g.showRewards())
	page.Add("curve", "Reward over the run", "The mean reward of episodes, in the order in which they were planned, with 95% bands by group.", g.showCurve())
	page.Add("versions", "Reward by version of the weights", "By the version that gave an episode's last answer.", g.showVersions())
	page.Add("distribution", "Distribution of rewards", "", g.showDistribution())
	page.Add("stops", "Why episodes ended", "", g.showStops())
	page.Add("lengths", "Lengths", "Steps that the environment took, and tokens of all answers and prompts of an episode.", g.showLengths())
	page.Add("steps", "Distribution of steps", "", g.showSteps())
	page.Add("groups", "Groups", "Complete: every planned episode ended, and none failed. Short: some failed, and the group is closed without them. Open: some have not ended. Equal: every episode was paid the same, which teaches nothing between them. Spread: what lies between the best and the worst of a group.", g.showGroups())
	page.Add("group-means", "Distribution of groups", "", g.showGroupMeans())
	page.Add("group-rewards", "Rewards by group", fmt.Sprintf("The groups that pay most unlike the others: at most %d of them, those first that differ most.", maxGroups), g.showGroupRewards())
	g.judges.AddTo(&page)
	page.Add("trouble", "What went wrong", "Failed episodes are in no mean above.", g.showTrouble())
	page.Add("time", "Where the time goes", "Of the time from an episode's first request to its end. The rest is recording, and waiting for a core.", g.showTime())
	return page.All
}

func (g *exhibits) showRewards() exhibit.Show {
	t := exhibit.Grid{Columns: []string{"player", "agent", "reward", "episodes", "groups", "lowest", "highest"}}
	for _, who := range g.players {
		s := sample(g.episodes, reward(who))
		paid := rewards(who, g.episodes) // at least one: players are listed with their rewards
		t.Rows = append(t.Rows, []any{g.label(who), who.agent, s, s.Episodes(), s.Estimate(0.95).N, slices.Min(paid), slices.Max(paid)})
	}
	return t
}

func (g *exhibits) showLengths() exhibit.Show {
	t := exhibit.Grid{Columns: []string{"environment", "steps", "longest", "answer tokens", "prompt tokens", "seconds"}}
	for _, env := range g.envs {
		of := g.episodesIn(env)
		longest := slices.MaxFunc(of, func(a, b *episode) int { return cmp.Compare(a.steps, b.steps) }).steps
		limit := slices.MaxFunc(of, func(a, b *episode) int { return cmp.Compare(a.limit, b.limit) }).limit
		number := func(f func(*episode) float64) *world.Sample {
			s := sample(of, func(e *episode) (float64, bool) { return f(e), e.stop != rules.StopFailed })
			s.Bounds = world.AtLeast0()
			return s
		}
		steps := number(func(e *episode) float64 { return float64(e.steps) })
		steps.Bounds = world.Bounds{High: float64(limit)} // as the score has them
		t.Rows = append(t.Rows, []any{
			env, steps, longest, number(func(e *episode) float64 { return float64(e.took.Output) }),
			number(func(e *episode) float64 { return float64(e.took.Input) }), number(func(e *episode) float64 { return e.took.Ended - e.took.Began }),
		})
	}
	return t
}

// showTrouble lists failures and retries.
func (g *exhibits) showTrouble() exhibit.Show {
	t := exhibit.Grid{Columns: []string{"what", "count", "of"}}
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
	add("rewards for agents who had done nothing", g.unmatched, "rewards")
	return t
}

// The states of groups.
const (
	groupComplete = "complete"
	groupShort    = "short"
	groupOpen     = "open"
)

// state returns the state of a group.
func (k *group) state() string {
	switch {
	case len(k.members) < k.planned:
		return groupOpen
	case k.failures > 0:
		return groupShort
	default:
		return groupComplete
	}
}

// standing returns the state with its reason.
func (k *group) standing() string {
	switch state := k.state(); state {
	case groupOpen:
		return fmt.Sprintf("%s: %d have not ended", state, k.planned-len(k.members))
	case groupShort:
		return fmt.Sprintf("%s: %d failed", state, k.failures)
	default:
		return state
	}
}

// spread returns the difference between the best and the worst reward of a group, by the first player.
func (k *group) spread() (x float64, ok bool) {
	low, high, n := math.Inf(1), math.Inf(-1), 0
	for _, e := range k.members {
		if len(e.rewards) > 0 {
			low, high = min(low, e.rewards[0].reward), max(high, e.rewards[0].reward)
			n++
		}
	}
	return high - low, n > 1
}

func (g *exhibits) grouped() bool {
	return slices.ContainsFunc(g.groups, func(k *group) bool { return k.planned > 1 })
}

func (g *exhibits) showGroups() exhibit.Show {
	if !g.grouped() {
		return nil
	}
	t := exhibit.Grid{Columns: []string{"environment", "groups", "complete", "short", "open", "equal", "spread"}}
	for _, env := range g.envs {
		states, equal := map[string]int{}, 0
		spread := &world.Sample{Bounds: world.AtLeast0()}
		for _, k := range g.groups {
			if k.env != env {
				continue
			}
			states[k.state()]++
			if x, ok := k.spread(); ok {
				spread.Add(world.Unit{}, x)
				if x == 0 {
					equal++
				}
			}
		}
		all := states[groupComplete] + states[groupShort] + states[groupOpen]
		t.Rows = append(t.Rows, []any{env, all, states[groupComplete], states[groupShort], states[groupOpen], equal, spread})
	}
	return t
}

// showGroupMeans shows how many groups have which mean reward.
func (g *exhibits) showGroupMeans() exhibit.Show {
	if !g.grouped() {
		return nil
	}
	return g.histogramOf("mean reward of a group", "groups", func(who player) (means []float64) {
		for _, k := range g.groups {
			if s := sample(k.members, reward(who)); s.Episodes() > 0 {
				means = append(means, s.Estimate(0.95).Value)
			}
		}
		return means
	})
}

// maxGroups is how many groups are listed.
const maxGroups = 20

// showGroupRewards lists groups, starting with those that differ most from the others.
func (g *exhibits) showGroupRewards() exhibit.Show {
	if !g.grouped() || len(g.players) == 0 {
		return nil
	}
	overall := map[player]float64{}
	for _, who := range g.players {
		overall[who] = sample(g.episodes, reward(who)).Estimate(0.95).Value
	}
	type row struct {
		cells []any
		apart float64
	}
	var rows []row
	for _, k := range g.groups {
		for _, who := range g.players {
			s := &world.Sample{} // episodes of one task, each for itself
			var stops []string
			for _, e := range k.members {
				if x, ok := reward(who)(e); ok {
					s.Add(world.Unit{Play: e.unit.Play}, x)
					stops = append(stops, string(e.stop))
				}
			}
			if s.Episodes() == 0 {
				continue
			}
			cells := []any{k.name, who.seat, fmt.Sprintf("%d of %d", s.Episodes(), k.planned), s, k.standing(), counted(stops)}
			rows = append(rows, row{cells, math.Abs(s.Estimate(0.95).Value - overall[who])})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.apart, a.apart) })
	t := exhibit.Grid{Columns: []string{"group", "seat", "episodes", "reward", "state", "ended by"}}
	for _, r := range rows[:min(len(rows), maxGroups)] {
		t.Rows = append(t.Rows, r.cells)
	}
	return t
}

// counted lists words with their counts.
func counted(words []string) string {
	counts := map[string]int{}
	for _, w := range words {
		counts[w]++
	}
	var out []string
	for _, w := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d %s", counts[w], w))
	}
	return strings.Join(out, ", ")
}

// maxPoints is the maximum number of points of a curve.
const maxPoints = 24

// showCurve shows the mean reward over the run. A point covers whole groups.
func (g *exhibits) showCurve() exhibit.Show {
	c := exhibit.Curves{X: "episode", Y: "reward"}
	for _, who := range g.players {
		var of []*group
		for _, k := range g.groups {
			if k.env == who.env {
				of = append(of, k)
			}
		}
		curve := exhibit.Curve{Name: g.label(who)}
		size := max(1, (len(of)+maxPoints-1)/maxPoints, minInPoint(len(of)))
		for part := range slices.Chunk(of, size) {
			var in []*episode
			for _, k := range part {
				in = append(in, k.members...)
			}
			if s := sample(in, reward(who)); s.Episodes() > 0 {
				curve.Points = append(curve.Points, exhibit.CurvePoint{X: middle(in), Sample: s})
			}
		}
		if len(curve.Points) > 1 {
			c.Curves = append(c.Curves, curve)
		}
	}
	return c
}

// minInPoint is the minimum number of groups of a point, if there are enough.
func minInPoint(groups int) int { return min(5, max(1, groups/4)) }

func middle(of []*episode) float64 {
	sum := 0.0
	for _, e := range of {
		sum += float64(e.number)
	}
	return sum / float64(len(of))
}

// showVersions shows the mean reward by version of the weights, if there are several.
func (g *exhibits) showVersions() exhibit.Show {
	c := exhibit.Curves{X: "version of the weights", Y: "reward"}
	several := false
	for _, who := range g.players {
		for _, e := range g.episodes {
			for _, p := range e.rewards {
				if p.player == who && p.known {
					c.At(g.label(who), p.version, world.Bounds{}).Add(e.unit, p.reward)
				}
			}
		}
	}
	for _, curve := range c.Curves {
		several = several || len(curve.Points) > 1
	}
	if !several {
		return nil
	}
	return c
}

// showDistribution shows how many episodes got which reward.
func (g *exhibits) showDistribution() exhibit.Show {
	return g.histogramOf("reward", "episodes", func(who player) []float64 { return rewards(who, g.episodes) })
}

// histogramOf counts values of each player.
func (g *exhibits) histogramOf(x, y string, of func(player) []float64) exhibit.Show {
	values := make([][]float64, len(g.players))
	names := make([]string, len(g.players))
	for i, who := range g.players {
		names[i], values[i] = g.label(who), of(who)
	}
	return histogram(x, y, names, values)
}

func (g *exhibits) showSteps() exhibit.Show {
	values := make([][]float64, len(g.envs))
	for i, env := range g.envs {
		for _, e := range g.episodesIn(env) {
			if e.stop != rules.StopFailed {
				values[i] = append(values[i], float64(e.steps))
			}
		}
	}
	return histogram("steps", "episodes", g.envs, values)
}

// maxBars is the maximum number of bars of a series.
const maxBars = 12

// histogram counts values: each by itself if there are few, otherwise in equal ranges.
func histogram(x, y string, names []string, values [][]float64) exhibit.Show {
	distinct := map[float64]bool{}
	for _, vs := range values {
		for _, v := range vs {
			distinct[v] = true
		}
	}
	if len(distinct) == 0 {
		return nil
	}
	b := exhibit.Bars{X: x, Y: y}
	at := slices.Sorted(maps.Keys(distinct))
	place := func(v float64) int { i, _ := slices.BinarySearch(at, v); return i }
	for _, v := range at {
		b.Labels = append(b.Labels, formatNumber(v))
	}
	if len(at) > maxBars {
		low, width, n := ranges(at[0], at[len(at)-1])
		place = func(v float64) int { return max(0, min(n-1, int((v-low)/width))) }
		b.Labels = nil
		for i := range n {
			b.Labels = append(b.Labels, formatBrief(low+float64(i)*width)+"–"+formatBrief(low+float64(i+1)*width))
		}
	}
	for i, vs := range values {
		s := exhibit.BarSeries{Name: names[i], Values: make([]float64, len(b.Labels))}
		for _, v := range vs {
			s.Values[place(v)]++
		}
		b.Series = append(b.Series, s)
	}
	return b
}

// ranges divides an interval into a few parts at round numbers.
func ranges(low, high float64) (from, width float64, n int) {
	const about = 8
	unit := math.Pow(10, math.Floor(math.Log10((high-low)/about)))
	for _, times := range []float64{1, 2, 2.5, 5, 10} {
		if width = unit * times; (high-low)/width <= about {
			break
		}
	}
	from = math.Floor(low/width) * width
	return from, width, max(1, min(about+2, int(math.Floor((high-from)/width))+1))
}

func formatNumber(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

func formatBrief(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

func (g *exhibits) showStops() exhibit.Show {
	counts := exhibit.Counts{}
	for _, e := range g.episodes {
		counts[[2]string{string(e.stop), e.env}]++
	}
	b := exhibit.Bars{X: "stop", Y: "episodes"}
	for _, stop := range []rules.Stop{rules.StopTerminated, rules.StopTruncated, rules.StopEmpty, rules.StopLength, rules.StopTooLong, rules.StopMaxSteps, rules.StopFailed} {
		if slices.Contains(counts.Labels(), string(stop)) {
			b.Labels = append(b.Labels, string(stop))
		}
	}
	return counts.Bars(b, g.envs)
}

// minShare is the smallest share of the time that is shown.
const minShare = 0.0005

// showTime shows what episodes spend their time on.
func (g *exhibits) showTime() exhibit.Show {
	parts := []struct {
		name string
		of   func(world.Took) float64
	}{
		{"models answer", func(t world.Took) float64 { return t.Asked }},
		{"waiting for models: limits, retries", func(t world.Took) float64 { return t.Queued }},
		{"environments: resets, prompts, steps", func(t world.Took) float64 { return t.Acted }},
		{"waiting for an environment", func(t world.Took) float64 { return t.Waited }},
		{"the rest", func(t world.Took) float64 {
			return max(0, t.Ended-t.Began-t.Asked-t.Queued-t.Acted-t.Waited)
		}},
	}
	t := exhibit.Grid{Columns: []string{"time", "seconds an episode", "share"}}
	for _, p := range parts {
		seconds, share := &world.Sample{Bounds: world.AtLeast0()}, &world.Sample{Bounds: world.Bounds{High: 1}}
		for _, e := range g.episodes {
			all := 0.0
			for _, q := range parts {
				all += q.of(e.took)
			}
			if all > 0 {
				seconds.Add(e.unit, p.of(e.took))
				share.Add(e.unit, p.of(e.took)/all)
			}
		}
		if seconds.Episodes() > 0 && share.Estimate(0.95).Value >= minShare {
			t.Rows = append(t.Rows, []any{p.name, seconds, share})
		}
	}
	return t
}
