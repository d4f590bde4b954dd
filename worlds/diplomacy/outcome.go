package diplomacy

import (
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

func scorings() []string {
	return []string{scoreGame, scoreShare, scoreDraw, scoreWelfare}
}

// scoringText explains the scoring to players.
func scoringText(scoring string) string {
	const solo = "Whoever owns 18 of the 34 supply centres after a fall wins. "
	switch scoring {
	case scoreShare:
		return solo + "Without a winner, your share of the centres at the end is your score."
	case scoreDraw:
		return solo + "Without a winner, all who are left share the victory equally: the fewer, the better."
	case scoreWelfare:
		return "After each winter you score a point for every supply centre that you keep no unit for; the sum of these points is all that counts, and nobody wins by conquest."
	}
	return solo + "Without a winner, every year you survive and every centre you own at the end count."
}

// score is a power's score.
func (g *game) score(p *player) float64 {
	centres := g.pos.Centres(p.power)
	won := g.won(p)
	switch g.Scoring {
	case scoreShare:
		if won {
			return 1
		}
		if g.decided() {
			return 0
		}
		return float64(centres) / rules.Centres
	case scoreDraw:
		switch {
		case won:
			return 1
		case g.decided() || !g.pos.Alive(p.power):
			return 0
		}
		return 1 / float64(len(g.alive()))
	case scoreWelfare:
		return float64(p.stats.Welfare)
	}
	last := g.MaxYear - 1900
	switch {
	case won:
		return float64(last + g.MaxYear - g.book.last.Year + 18)
	case p.stats.Out > 0:
		return float64(p.stats.Out - 1900)
	}
	return float64(last + centres)
}

// decided reports whether one power won.
func (g *game) decided() bool {
	return len(g.end.Winners) == 1 && g.end.Reason != recordDraw
}

func (g *game) won(p *player) bool { return g.decided() && g.end.Winners[0] == p.seat }

// outcome returns the scores and the data of the game.
func (g *game) outcome() world.Outcome {
	o := world.Outcome{}
	s := &recordSummary{
		Ended: g.end.Reason, Last: g.book.played, Winners: g.end.Winners, Scoring: g.Scoring, Press: g.Rounds > 0,
		Powers: map[string]*recordPower{}, Centres: g.book.counts, Relations: g.meanRelations(), Moments: g.book.best(), Unjudged: g.book.unjudged,
	}
	for _, p := range g.players {
		st := p.stats
		st.Score, st.Centres, st.Units = g.score(p), g.pos.Centres(p.power), g.pos.Count(p.power)
		st.Survived, st.Solo = g.pos.Alive(p.power), g.won(p)
		s.Powers[p.seat] = st
		o.Scores = append(o.Scores, g.scores(p)...)
	}
	o.Scores = append(o.Scores, world.Score{Name: "solo", Value: number(g.decided())}, world.Score{Name: "draw", Value: number(g.end.Reason == recordDraw)},
		world.Score{Name: "years", Value: float64(len(g.book.counts) - 1)})
	if g.silent() {
		o.Failed, o.Scores = g.ordersAsked.Because("nobody ever gave a legal order"), nil
	}
	o.Data = s
	return o
}

// Measures are the scores of games with these params.
func (d *definition) Measures(p *Params) []world.Measure {
	if d.check(p) != nil {
		return nil
	}
	all := []world.Measure{{Name: "solo", Bounds: world.Share()}, {Name: "draw", Bounds: world.Share()}, {Name: "years", Bounds: world.AtLeast0()}}
	for _, name := range showScores() {
		if name == "messages" && p.Rounds == 0 || name == "betrayals" && !p.Diary {
			continue
		}
		rivals := name == "score" && p.Scoring != scoreWelfare // one power's welfare does not reduce another's
		all = append(all, world.Measure{Name: name, Seats: rules.PowerNames(), Bounds: bounds(name, p.Scoring), Rivals: rivals})
	}
	return all
}

// silent reports whether orders were due and no power ever gave a legal one: then there is
// nothing to score.
func (g *game) silent() bool {
	absent := false
	for _, p := range g.players {
		if p.stats.Given() > 0 {
			return false
		}
		absent = absent || p.absent()
	}
	return absent
}

// absent reports whether orders of a power were due and it never gave a legal one: its units only
// held, which says nothing about its agent.
func (p *player) absent() bool { return p.stats.Given() == 0 && p.stats.Missing > 0 }

// scores returns the scores of a power: none if it never gave a legal order, and none about
// messages if every question for messages failed.
func (g *game) scores(p *player) []world.Score {
	st := p.stats
	var list []world.Score
	if p.absent() {
		return nil
	}
	add := func(name string, value float64) {
		list = append(list, world.Score{Seat: p.seat, Name: name, Value: value})
	}
	add("score", st.Score)
	add("centres", float64(st.Centres))
	add("survived", number(st.Survived))
	add("solo", number(st.Solo))
	if n, ok := st.Active(); n > 0 {
		add("success", float64(ok)/float64(n))
	}
	if n, illegal := st.Written(); n > 0 && !p.bot {
		add("invalid", float64(illegal)/float64(n))
	}
	if g.Rounds > 0 && !p.bot && (p.heard || p.stats.Failed["message"] == 0) {
		add("messages", float64(st.Private+st.Public))
	}
	if g.Diary && g.viewed(p) {
		add("betrayals", float64(st.Betrayed))
	}
	if n := st.Kept + st.Broken; n > 0 {
		add("kept", float64(st.Kept)/float64(n))
	}
	return list
}

// viewed reports whether the relations of others to a power are known: whether one of those that
// keep a diary ever gave its relations, or nobody keeps one.
func (g *game) viewed(p *player) bool {
	writers := 0
	for _, other := range g.players {
		if other == p || other.bot {
			continue
		}
		if other.viewed {
			return true
		}
		writers++
	}
	return writers == 0
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// meanRelations is how powers saw each other, the mean over the game.
func (g *game) meanRelations() map[string]map[string]float64 {
	if g.book.phases == 0 {
		return nil
	}
	all := map[string]map[string]float64{}
	for _, p := range g.players {
		if p.bot {
			continue
		}
		all[p.seat] = map[string]float64{}
		for _, other := range g.players {
			if other != p && !other.bot {
				all[p.seat][other.seat] = float64(g.book.sums[p.power][other.power]) / float64(g.book.phases)
			}
		}
	}
	return all
}
