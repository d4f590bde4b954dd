package report

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/internal/kit/statmath"
	"parley/internal/kit/text"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

// headline returns the overview: kind, state and cost, as facts, or as a row of a table
// if there are several runs.
func headline(source Source, several bool) Section {
	r := source.Run
	s := Section{ID: "overview", Title: "Overview"}
	if !several {
		s.Blocks = append(s.Blocks, facts(r))
	}
	b, all, e := r.Head.Begun, r.Total(), r.Episodes
	for _, text := range []string{runfile.LostText(source.Journal), forkText(b.Fork), mergedText(source), grownText(b.Grown, e.Total), editedText(b.Edited), AgainText(b.Again), TagsLeftOut(source.Run), r.MeasuresNote(), r.CountedNote()} {
		if text != "" {
			s.Blocks = append(s.Blocks, Block{Text: text})
		}
	}
	if note := results.CopiesNote(r.Head); note != "" {
		s.Blocks = append(s.Blocks, Block{Text: note})
	}
	if f := r.Fault; f != nil {
		s.Blocks = append(s.Blocks, Block{Text: fmt.Sprintf("Failed episodes: %s. The most frequent cause (%s): %s", text.GroupDigits(e.Failed), text.GroupDigits(f.Episodes), f)})
	}
	s.Blocks = append(s.Blocks, Block{OffPage: !several, Table: &Table{
		Name: "runs", Title: "Runs", Track: -1,
		Columns: []Column{
			textColumn("kind"), textColumn("state"), NumberColumn("episodes"), NumberColumn("distinct plays"), NumberColumn("failed"), NumberColumn("unfinished"), NumberColumn("calls"),
			NumberColumn("failed calls"), NumberColumn("acts"), NumberColumn("failed acts"), NumberColumn("tokens in"), NumberColumn("tokens out"), NumberColumn("cost"), NumberColumn("played"), {Name: "copies", Detail: true},
		},
		Rows: [][]Cell{{
			Word(b.Kind), Word(strings.TrimSuffix(string(r.State)+": "+r.Reason, ": ")), whole(e.Ended), distinctCell(r.Head), countOrDash(e.Failed), countOrDash(e.Playing + e.Waiting),
			whole(all.Calls), countOrDash(all.FailedCalls), countOrDash(all.Acts), countOrDash(all.FailedActs), whole(all.Usage.Input), whole(all.Usage.Output), money(all.Cost), seconds(r.Played), Word(results.CopiesNote(r.Head)),
		}},
	}})
	return s
}

// distinctCell is the number of distinct plays, if known.
func distinctCell(head *journal.Head) Cell {
	distinct, _ := results.Distinct(head)
	return countOrDash(distinct)
}

// forkText explains what the intervals of a fork mean.
func forkText(from *journal.Origin) string {
	switch {
	case from == nil:
		return ""
	case from.Turn == 0:
		return fmt.Sprintf("This is a fork of episode %d of %s from its beginning: all episodes have its deal, so intervals describe how that deal can continue.", from.Episode, filepath.Base(from.File))
	}
	return fmt.Sprintf("This is a fork of episode %d of %s at turn %d: the turns before are copies of that one episode, the same in all episodes here. They are one observation, however many episodes there are; intervals describe how the episode can continue from there.",
		from.Episode, filepath.Base(from.File), from.Turn)
}

// mergedText lists the runs that were merged.
func mergedText(s Source) string {
	if s.Parts == nil {
		return ""
	}
	var of []string
	first := 0
	for _, p := range s.Parts {
		switch p.Episodes {
		case 0:
			of = append(of, "all episodes of "+p.Name+" are in another run")
		case 1:
			of = append(of, fmt.Sprintf("episode %d is from %s", first, p.Name))
		default:
			of = append(of, fmt.Sprintf("episodes %d to %d are from %s", first, first+p.Episodes-1, p.Name))
		}
		first += p.Episodes
	}
	text := []string{fmt.Sprintf("%d runs are merged: %s.", len(s.Parts), strings.Join(of, ", "))}
	for _, n := range s.Notes {
		text = append(text, n+".")
	}
	return strings.Join(text, " ")
}

// grownText describes how a run grew.
func grownText(grown []journal.Growth, total int) string {
	if len(grown) == 0 {
		return ""
	}
	var steps []string
	for _, g := range grown {
		steps = append(steps, fmt.Sprintf("%s episodes until %s", text.GroupDigits(g.Episodes), stamp(g.At)))
	}
	return fmt.Sprintf("The plan of this run was enlarged: it had %s, and has %s now.", strings.Join(steps, ", then "), text.GroupDigits(total))
}

// editedText describes when the code of a run was changed.
func editedText(edited []journal.Growth) string {
	if len(edited) == 0 {
		return ""
	}
	var steps []string
	for _, g := range edited {
		steps = append(steps, fmt.Sprintf("when %s episodes had begun, on %s", text.GroupDigits(g.Episodes), stamp(g.At)))
	}
	return fmt.Sprintf("The code of this run was changed while it was played: %s. Its episodes do not all follow the same rules.", strings.Join(steps, ", and "))
}

// AgainText says which episodes of a run were played again. It is empty if none were.
func AgainText(all []journal.Again) string {
	if len(all) == 0 {
		return ""
	}
	var steps []string
	for _, g := range all {
		steps = append(steps, g.String()+", on "+stamp(g.At))
	}
	return fmt.Sprintf("Failed episodes of this run were played again: %s. What they had been answered was used again as far as it fitted.", strings.Join(steps, "; "))
}

func facts(r *results.Run) Block {
	b, all, e := r.Head.Begun, r.Total(), r.Episodes
	cost, each := costFact(r, all)
	facts := []Fact{
		{Name: "kind", Value: b.Kind, More: agentsText(r)},
		{Name: "state", Value: string(r.State), More: r.Reason},
		{Name: "episodes", Value: text.GroupDigits(e.Ended), More: episodesText(e)},
		{Name: "calls", Value: text.GroupDigits(all.Calls), More: failedText(all.FailedCalls)},
		{Name: "cost", Value: cost, More: each},
		{Name: "begun", Value: stamp(b.At), More: fmt.Sprintf("%s played%s", Duration(r.Played), processesText(r.Processes))},
	}
	if all.Acts > 0 {
		facts = slices.Insert(facts, 4, Fact{Name: "acts", Value: text.GroupDigits(all.Acts), More: failedText(all.FailedActs)})
	}
	if n := len(r.Head.Steered); n > 0 {
		facts = append(facts, Fact{Name: "steered", Value: text.GroupDigits(n) + " times", More: stamp(r.Head.Steered[n-1].At) + ": " + r.Head.Steered[n-1].String()})
	}
	return Block{Facts: facts}
}

// costFact returns the recorded cost. Models without a known price have none.
func costFact(r *results.Run, all results.Account) (cost, more string) {
	var free []string
	for _, a := range r.Rollup(func(k results.AccountKey) results.AccountKey { return results.AccountKey{Kind: k.Kind, Model: k.Model} }) {
		if a.Kind == journal.Ask && a.Cost == 0 && a.Usage.Output > 0 {
			free = append(free, a.Model)
		}
	}
	switch {
	case all.Cost == 0:
		return "none recorded", "the prices of the models are unknown"
	case len(free) > 0:
		return Dollars(all.Cost), "no cost was recorded for " + strings.Join(free, ", ")
	default:
		return Dollars(all.Cost), ""
	}
}

func agentsText(r *results.Run) string {
	var parts []string
	for _, a := range r.Head.Begun.Agents {
		model := r.Model(a.Name)
		if model == a.Name {
			parts = append(parts, a.Name)
			continue
		}
		parts = append(parts, a.Name+" = "+model)
	}
	if len(parts) > 4 {
		return fmt.Sprintf("%s and %d more agents", strings.Join(parts[:3], ", "), len(parts)-3)
	}
	return strings.Join(parts, ", ")
}

func episodesText(e journal.EpisodeCounts) string {
	out := "all ended"
	if e.Ended < e.Total {
		out = fmt.Sprintf("ended of %s", text.GroupDigits(e.Total))
	}
	if e.Failed > 0 {
		out += fmt.Sprintf(", %s failed", text.GroupDigits(e.Failed))
	}
	return out
}

func failedText(n int) string {
	if n == 0 {
		return "none failed"
	}
	return text.GroupDigits(n) + " failed"
}

func processesText(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(", in %d processes", n)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// scores returns the tables of scores: first by agent, and then by whatever else
// varies in this run.
func scores(r *results.Run, colours *Palette) (s Section) {
	s = Section{ID: "scores", Title: "Scores", Text: "Means over episodes with 95% intervals. An episode counts once in a group; failed episodes do not count. Total is the sum of all values; for a share, it is the number of times. Independent is the number of independent observations: episodes with the same deal, and copies of one play, count as one."}
	if t := failedTable(r, colours); len(t.Rows) > 0 {
		defer func() { s.Blocks = append(s.Blocks, Block{Title: t.Title, Table: t}) }()
	}
	agents := r.Scores(func(g results.Group) results.Group {
		return results.Group{Score: g.Score, Agent: g.Agent, Model: g.Model}
	})
	byAgent := scoreTable(r, colours, "scores", "By agent", append(agents, overall(r, agents)...))
	if len(byAgent.Rows) == 0 {
		s.Text = "No episode has a score yet."
		return s
	}
	if found := standing(r, byAgent.Rows[0][0].Text); found != "" {
		s.Blocks = append(s.Blocks, Block{Text: found, Finding: true})
	}
	s.Blocks = append(s.Blocks, Block{Title: byAgent.Title, Table: byAgent})
	for _, more := range []struct {
		name, title string
		needs       func(results.Group) string // the table is shown only if this has two values
		by          func(results.Group) results.Group
	}{
		{"scores-by-model", "By model", func(g results.Group) string { return g.Model }, func(g results.Group) results.Group { return results.Group{Score: g.Score, Model: g.Model} }},
		{"scores-by-seat", "By agent and seat", func(g results.Group) string { return g.Seat }, func(g results.Group) results.Group {
			return results.Group{Score: g.Score, Agent: g.Agent, Seat: g.Seat}
		}},
		{"scores-by-cell", "By cell", func(g results.Group) string { return g.Cell }, func(g results.Group) results.Group {
			return results.Group{Score: g.Score, Cell: g.Cell, Agent: g.Agent, Seat: g.Seat}
		}},
	} {
		if !varied(r, more.needs) {
			continue
		}
		t := scoreTable(r, colours, more.name, more.title, r.Scores(more.by))
		if len(t.Rows) != len(agents) {
			t.Quiet = more.name != "scores-by-model"
			s.Blocks = append(s.Blocks, Block{Title: t.Title, Table: t, Folded: t.Quiet})
		}
	}
	return s
}

// Mean is the mean of a score: of an agent, or if that is empty, of all episodes.
type Mean struct {
	Score, Agent string
	statmath.Quantity
}

// MainResult returns the means of the main score, which is the first that a run has: of each agent, the highest first, or of all if
// agents have none. all has the mean of each score, the main one first. Without scores, both are empty.
func MainResult(r *results.Run) (main, all []Mean) {
	agents := r.Scores(func(g results.Group) results.Group { return results.Group{Score: g.Score, Agent: g.Agent} })
	rows := append(agents, overall(r, agents)...)
	sortScores(r, rows)
	for i, s := range rows {
		m := Mean{s.Score, s.Agent, s.Estimate()}
		last := i+1 == len(rows) || rows[i+1].Score != s.Score // all agents together
		if last {
			all = append(all, m)
		}
		if s.Score == rows[0].Score && (s.Agent != "" || last && len(main) == 0) {
			main = append(main, m)
		}
	}
	slices.SortStableFunc(main, func(a, b Mean) int { return cmp.Compare(b.Value, a.Value) })
	return main, all
}

// varied reports whether a part of groups has several values.
func varied(r *results.Run, part func(results.Group) string) bool {
	first, several := "", false
	r.Each(func(p world.Played) {
		for _, s := range p.Outcome.Scores {
			if several {
				return
			}
			agent := p.Spec.Lineup[s.Seat]
			v := part(results.Group{Cell: p.Spec.Cell, Agent: agent, Model: r.Model(agent), Seat: s.Seat})
			several = first != "" && v != "" && v != first
			first = cmp.Or(first, v)
		}
	})
	return several
}

func scoreTable(r *results.Run, colours *Palette, name, title string, all []results.Score) *Table {
	sortScores(r, all)
	t := &Table{Name: name, Title: title, Grouped: true, Filter: len(all) > 30}
	parts := []struct {
		name string
		of   func(results.Group) string
	}{
		{"score", func(g results.Group) string { return g.Score }}, {"cell", func(g results.Group) string { return g.Cell }},
		{"agent", func(g results.Group) string { return g.Agent }}, {"model", func(g results.Group) string { return g.Model }},
		{"seat", func(g results.Group) string { return g.Seat }},
	}
	used := map[string]bool{}
	for _, s := range all {
		for _, p := range parts {
			used[p.name] = used[p.name] || p.of(s.Group) != ""
		}
	}
	for _, p := range parts {
		if used[p.name] {
			t.Columns = append(t.Columns, KeyColumn(p.name))
		}
	}
	t.Track = len(t.Columns)
	t.Columns = append(t.Columns, NumberColumn("mean"))
	t.Columns = append(t.Columns, countColumns()...)
	for _, s := range all {
		q := s.Estimate()
		var row []Cell
		for _, p := range parts {
			if used[p.name] {
				row = append(row, Word(orEveryone(p.of(s.Group), p.name)))
			}
		}
		c := Quantity(q)
		c.Look = colours.Look(cmp.Or(s.Agent, s.Model))
		t.Rows = append(t.Rows, append(append(row, c), countCells(s.Sample, q)...))
	}
	return t
}

// countColumns are the columns beside a mean or a share.
func countColumns() []Column {
	return []Column{NumberColumn("total"), {Name: "values", Number: true, Detail: true}, NumberColumn("episodes"), NumberColumn("independent")}
}

// countCells has the sum of all values, how many values there are, and in how many episodes.
func countCells(s *world.Sample, q statmath.Quantity) []Cell {
	sum, values := s.Total()
	return []Cell{{Text: digits(sum), Value: sum}, whole(values), whole(s.Episodes()), whole(q.N)}
}

// overall returns the scores of all agents together, if several have the same score and the episode has none of that name.
func overall(r *results.Run, byAgent []results.Score) []results.Score {
	agents := map[string]int{}
	for _, s := range byAgent {
		if s.Agent != "" {
			agents[s.Score]++
		} else {
			agents[s.Score] = math.MinInt32
		}
	}
	return slices.DeleteFunc(r.Scores(func(g results.Group) results.Group { return results.Group{Score: g.Score} }),
		func(s results.Score) bool { return agents[s.Score] < 2 })
}

// sortScores puts agents in the order of the plan. The order of scores stays.
func sortScores(r *results.Run, all []results.Score) {
	name, agent := map[string]int{}, map[string]int{}
	for _, s := range all {
		if _, ok := name[s.Score]; !ok {
			name[s.Score] = len(name)
		}
	}
	agent[""] = len(r.Head.Begun.Agents) // all of them come last
	for i, a := range r.Head.Begun.Agents {
		agent[a.Name] = i
	}
	slices.SortStableFunc(all, func(a, b results.Score) int {
		return cmp.Or(cmp.Compare(name[a.Score], name[b.Score]), cmp.Compare(a.Cell, b.Cell), cmp.Compare(agent[a.Agent], agent[b.Agent]), cmp.Compare(a.Seat, b.Seat))
	})
}

// orEveryone returns "(all)" as the agent of a score of the whole episode.
func orEveryone(text, part string) string {
	if text == "" && part == "agent" {
		return "(all)"
	}
	return text
}

// reproduce returns the section on how to reproduce the run.
func reproduce(source Source) Section {
	s := Section{ID: "reproduce", Title: "How to reproduce", Text: "The run file has everything: requests, answers, and the plan below with every default written out. The same plan and seed give the same deals. Models may answer differently."}
	for _, p := range source.parts() {
		b := p.Run.Head.Begun
		facts := []Fact{
			{Name: "run", Value: b.Run, More: "written by " + b.Tool},
			{Name: "seed", Value: fmt.Sprint(b.Seed)},
			{Name: "kind", Value: b.Kind, More: fmt.Sprintf("version %d; file format %d", b.KindVersion, b.Version)},
		}
		if f := b.Fork; f != nil {
			facts = append(facts, Fact{Name: "forked from", Value: f.File, More: fmt.Sprintf("run %s, episode %d, turn %d", f.Run, f.Episode, f.Turn)})
		}
		s.Blocks = append(s.Blocks, Block{Title: p.Name, Facts: facts}, Block{Title: "Plan", Text: p.Run.Plan(), Pre: true})
	}
	return s
}

// ratings returns a table of Elo ratings if three or more agents met, from the
// score that seats compete for. Without such a score it returns an empty block.
func ratings(s Source, colours *Palette) (b Block) {
	name := rivalry(s)
	if name == "" {
		return b
	}
	games := gamesOf(s.Run, name)
	table, err := statmath.Rate(games, results.Confidence)
	if err != nil || len(table.Standings) < 3 {
		return b
	}
	t := &Table{Name: "ratings", Title: "Ratings", Track: 1, Loose: true, Columns: []Column{
		KeyColumn("agent"), NumberColumn("rating"), NumberColumn("group"), NumberColumn("meetings"), NumberColumn("won"), textColumn("note"),
	}}
	for _, st := range table.Standings {
		c := Quantity(st.Rating)
		c.Look = colours.Look(st.Player)
		t.Rows = append(t.Rows, []Cell{Word(st.Player), c, whole(st.Group), whole(st.Rating.N), Real(st.Score), Word(st.Why)})
	}
	return Block{Title: t.Title, Table: t, Caption: fmt.Sprintf("Bradley-Terry ratings on Elo's scale, from every meeting of two agents in an episode. The agent with more %s wins. 1,500 is the mean of a group; a difference of 400 means "+
		"10 to 1. Copies of a play count once. See docs/reference/statistics.md. Ratings of different groups cannot be compared.", name)}
}

// rivalry returns the first score that seats compete for.
func rivalry(s Source) string {
	all := s.Run.Measures()
	if i := slices.IndexFunc(all, func(m world.Measure) bool { return m.Rivals }); i >= 0 {
		return all[i].Name
	}
	return ""
}

// gamesOf returns the meetings of two agents in episodes that did not fail.
func gamesOf(r *results.Run, score string) (games []statmath.Game) {
	copied := map[int]bool{}
	r.Each(func(p world.Played) {
		if p.Outcome.Failed != "" || p.Unit.Play != 0 && copied[p.Unit.Play] {
			return
		}
		copied[p.Unit.Play] = true
		var own []world.Score
		for _, s := range p.Outcome.Scores {
			if s.Name == score && p.Spec.Lineup[s.Seat] != "" {
				own = append(own, s)
			}
		}
		for i, x := range own {
			for _, y := range own[i+1:] {
				a, b := p.Spec.Lineup[x.Seat], p.Spec.Lineup[y.Seat]
				if a == b || x.Value != x.Value || y.Value != y.Value {
					continue
				}
				games = append(games, statmath.Game{A: a, B: b, Score: won(x.Value, y.Value), Deal: dealName(p.Unit)})
			}
		}
	})
	return games
}

func won(x, y float64) float64 {
	switch {
	case x > y:
		return 1
	case x < y:
		return 0
	default:
		return 0.5
	}
}

// dealName returns the deal of an episode, or "" for an episode of a fork.
func dealName(u world.Unit) string {
	if u.Deal == 0 {
		return ""
	}
	return fmt.Sprint(u.Deal)
}
