package world

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Until plays cells until a score of each is known well enough, or is not going to be:
// it plays Min repetitions of every cell and then, stage by stage, Step more of each
// cell whose interval is still too wide. Where it stops depends on outcomes alone.
//
// Looking again and again at a growing sample makes an interval a little too sure of
// itself. Min keeps that small: do not make it a handful.
type Until struct {
	// Cells are what to play, one spec for each, as Matrix.Cells returns them. Repetitions
	// have deals from 0 up, the same in every cell.
	Cells []Spec
	// Score is the name of the score that is to be known.
	Score string
	// Seat is whose score; or Agent, wherever it sits. At
	// most one of them. Default: the score of the whole episode.
	Seat, Agent string
	// Bounds are what the score can be. Default: anything.
	Bounds Bounds
	// Width is half the width of the interval to reach: 0.05 for ±0.05.
	Width float64
	// Confidence of the interval. Default: 0.95.
	Confidence float64
	// Min and Max bound the repetitions of a cell. Default: 30 and 1,000.
	Min, Max int
	// Step is how many more to play at a time. Default: Min.
	Step int
}

// Plan checks u and makes it a plan. A cell ends when the interval of its score is
// narrow enough, when Max repetitions were played, or when more would cost and tell nothing:
// Min were played and none had the score, all were copies of one play, or a score without
// bounds was the same in all of them. Episodes that failed are played
// but not counted. Where no episode of any cell had the score though some ended well, its
// name is wrong: the plan ends after the first stage, and its Err says what there is.
func (u Until) Plan() (Plan, error) {
	u = u.resolved()
	switch {
	case len(u.Cells) == 0:
		return nil, errors.New("world: until: no cells")
	case u.Score == "":
		return nil, errors.New("world: until: no score")
	case u.Seat != "" && u.Agent != "":
		return nil, errors.New("world: until: a seat or an agent, not both")
	case !(u.Width > 0) || math.IsInf(u.Width, 1):
		return nil, fmt.Errorf("world: until: width %v: want a number above 0", u.Width)
	case !(u.Confidence > 0 && u.Confidence < 1):
		return nil, fmt.Errorf("world: until: confidence %v: want one between 0 and 1, as 0.95", u.Confidence)
	case u.Min < 2 || u.Max < u.Min || u.Step < 1:
		return nil, fmt.Errorf("world: until: min %d, max %d, step %d: want min of 2 or more, max of no less, step of 1 or more", u.Min, u.Max, u.Step)
	case max(u.Min, u.Step) > MaxEpisodes/len(u.Cells):
		return nil, fmt.Errorf("world: until: min %d and step %d of %d cells make a stage of more than %d episodes: lower them", u.Min, u.Step, len(u.Cells), MaxEpisodes)
	}
	p := &untilPlan{Until: u, cells: map[string]*untilCell{}}
	for _, spec := range u.Cells {
		if p.cells[spec.Cell] != nil {
			return nil, fmt.Errorf("world: until: two cells are named %q", spec.Cell)
		}
		c := &untilCell{spec: spec, sample: Sample{Bounds: u.Bounds}}
		p.cells[spec.Cell] = c
		p.open = append(p.open, c)
	}
	return p, nil
}

func (u Until) resolved() Until {
	if u.Confidence == 0 {
		u.Confidence = 0.95
	}
	if u.Min == 0 {
		u.Min = 30
		if u.Max > 0 {
			u.Min = min(u.Min, u.Max)
		}
	}
	if u.Max == 0 {
		u.Max = max(1000, u.Min)
	}
	if u.Step == 0 {
		u.Step = u.Min
	}
	return u
}

// untilPlan is an Until being played.
type untilPlan struct {
	Until
	cells map[string]*untilCell // by name
	open  []*untilCell          // that are not known well enough, in order
	began bool                  // Next was called: what is taken in was asked for
	found bool                  // an episode had the score
	other []string              // what they had instead, as people write it
	err   error
}

type untilCell struct {
	spec   Spec
	sample Sample
	dealt  int // repetitions asked for
	until  int // and how many there are when it is looked at next
}

// Next takes in a stage and asks for more of what is not known well enough. A stage is
// round after round of the open cells. When a cell ends depends on its own episodes alone, and on
// how many there are: a plan that takes in those of a smaller one ends it where it would have
// ended it by itself.
func (p *untilPlan) Next(last []Played) Specs {
	for _, l := range last {
		c := p.cells[l.Spec.Cell]
		if c == nil {
			continue // not asked for
		}
		if !p.began { // else it was counted when it was asked for
			c.dealt = max(c.dealt, l.Spec.Deal+1)
		}
		if x := p.values(l); len(x) > 0 {
			p.found = true
			c.sample.Add(l.Unit, x...)
		} else if !p.found {
			p.others(l.Outcome)
		}
	}
	p.began = true
	if !p.found && len(p.other) > 0 {
		p.err = fmt.Errorf("world: until: no episode has a score %s; there are: %s", scoreName(p.Score, p.whose()), strings.Join(p.other, ", "))
		return Specs{}
	}
	p.open = slices.DeleteFunc(p.open, p.done)
	for _, c := range p.open {
		c.until = p.check(c.dealt)
	}
	specs, err := p.rounds()
	p.err = err // none: Plan has checked it
	return specs
}

// rounds asks for what is missing of the open cells, in rounds of all of which something is.
func (p *untilPlan) rounds() (Specs, error) {
	var blocks []Block
	for {
		b := Block{}
		var missing []*untilCell
		for _, c := range p.open {
			if n := c.until - c.dealt; n > 0 {
				b.Groups = append(b.Groups, Group{c.spec.dealt(c.dealt), 1})
				missing = append(missing, c)
				b.Rounds = min(n, cmp.Or(b.Rounds, n))
			}
		}
		if len(missing) == 0 {
			return Blocks(blocks...)
		}
		for _, c := range missing {
			c.dealt += b.Rounds
		}
		blocks = append(blocks, b)
	}
}

// check is the next number of repetitions, after so many, at which a cell is looked at.
func (p *untilPlan) check(dealt int) int {
	if dealt < p.Min {
		return p.Min
	}
	last := dealt - (dealt-p.Min)%p.Step
	return last + min(p.Step, p.Max-last)
}

// Err is why the plan has come to an end that is none, or nil.
func (p *untilPlan) Err() error { return p.err }

// others notes the names of scores.
func (p *untilPlan) others(o Outcome) {
	for _, s := range o.Scores {
		whose := ""
		if s.Seat != "" {
			whose = "seat " + s.Seat
		}
		if name := scoreName(s.Name, whose); o.Failed == "" && !slices.Contains(p.other, name) {
			p.other = append(p.other, name)
		}
	}
}

func (p *untilPlan) whose() string {
	switch {
	case p.Seat != "":
		return "seat " + p.Seat
	case p.Agent != "":
		return "agent " + p.Agent
	default:
		return ""
	}
}

// scoreName is a score as people write it: points of seat first.
func scoreName(name, whose string) string {
	if whose == "" {
		return name + " of the whole episode"
	}
	return name + " of " + whose
}

func (p *untilPlan) done(c *untilCell) bool {
	if c.dealt < p.Min || c.dealt < p.Max && (c.dealt-p.Min)%p.Step != 0 {
		return false // it is not looked at yet
	}
	if c.sample.Episodes() == 0 || c.sample.hopeless() {
		return true
	}
	return c.sample.Estimate(p.Confidence).Half() <= p.Width
}

// values are the scores of one episode, of each seat that is asked for.
func (p *untilPlan) values(l Played) (out []float64) {
	if l.Outcome.Failed != "" {
		return nil
	}
	for _, s := range l.Outcome.Scores {
		wanted := s.Seat == p.Seat
		if p.Agent != "" {
			wanted = s.Seat != "" && l.Spec.Lineup[s.Seat] == p.Agent
		}
		if wanted && s.Name == p.Score && !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) {
			out = append(out, s.Value)
		}
	}
	return out
}
