package report

import (
	"fmt"
	"slices"

	"parley/internal/kit/statmath"
	"parley/internal/run/results"
	"parley/world"
)

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
		Key("agent"), Number("rating"), Number("group"), Number("meetings"), Number("won"), pageWords("note"),
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
