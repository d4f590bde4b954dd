package planner

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/internal/kit/fieldtag"
	"parley/world"
)

// Until plays cells until a score of each is known precisely enough, or more episodes cannot help. It plays Min
// repetitions of every cell and then, stage by stage, Step more of each cell whose interval is still too wide. Where it
// stops depends only on outcomes.
//
// Checking a growing sample repeatedly makes an interval slightly too narrow. A large enough Min keeps this effect small.
type Until struct {
	// Cells has one spec for each cell, as Matrix.Cells returns them. Repetitions have the deals 0, 1, …, the same in
	// every cell.
	Cells []world.Spec `json:"-"`
	Score string       `json:"score" doc:"The name of the score." required:"true" filled:"true"`
	Seat  string       `json:"seat,omitempty" doc:"Whose score. Not together with agent." default:"the score of the whole episode" filled:"true"`
	Agent string       `json:"agent,omitempty" doc:"Whose score, wherever it sits. Not together with seat." default:"the score of the whole episode" filled:"true"`
	// Bounds are the possible values of the score. Default: anything.
	Bounds     world.Bounds `json:"-"`
	Width      float64      `json:"width" doc:"Half the width of the interval to reach: 0.05 for ±0.05." required:"true" range:">0"`
	Confidence float64      `json:"confidence" doc:"The confidence of the interval." default:"0.95" range:">0..<1"`
	Min        int          `json:"min" doc:"The smallest number of episodes of a cell that have the score." default:"30" range:"2..2147483647"`
	Max        int          `json:"max" doc:"The largest number of episodes of a cell." default:"1000" range:"2..2147483647"`
	Step       int          `json:"step" doc:"How many more episodes to play at a time." default:"min" range:"1..2147483647"`
}

// Plan checks u and makes it a plan. A cell ends after Max repetitions, or earlier with Min episodes that have the score: when
// its interval is narrow enough, or when more would show nothing, because all are copies of one play, or a score without bounds
// was always the same. It also ends if none of Min repetitions has the score. Failed episodes do not count. If no episode has the score although some succeeded,
// its name is wrong: the plan ends after the first stage, and Err lists the scores.
func (u Until) Plan() (world.Stages, error) {
	u = u.WithDefaults()
	if err := u.Check(); err != nil {
		return nil, err
	}
	switch {
	case len(u.Cells) == 0:
		return nil, errors.New("until: no cells")
	case u.Seat != "" && u.Agent != "":
		return nil, errors.New("until: a seat or an agent, not both")
	case max(u.Min, u.Step) > world.MaxEpisodes/len(u.Cells):
		return nil, fmt.Errorf("until: min %d and step %d of %d cells make a stage of more than %d episodes: lower them", u.Min, u.Step, len(u.Cells), world.MaxEpisodes)
	}
	p := &untilPlan{Until: u, cells: map[string]*untilCell{}}
	for _, spec := range u.Cells {
		if p.cells[spec.Cell] != nil {
			return nil, fmt.Errorf("until: two cells are named %q", spec.Cell)
		}
		c := &untilCell{spec: spec, sample: world.Sample{Bounds: u.Bounds}}
		p.cells[spec.Cell] = c
		p.open = append(p.open, c)
	}
	return p, nil
}

// Check checks the score and the numbers of u, which has its defaults.
func (u Until) Check() error {
	if faults := fieldtag.Check(u); faults != nil {
		return fmt.Errorf("until: %v", faults[0])
	}
	if u.Max < u.Min {
		return fmt.Errorf("until: min %d, max %d: want max of min or more", u.Min, u.Max)
	}
	return nil
}

// Enough reports whether no more episodes of a cell are wanted, of which so many were played, with a sample of the score of those that have it.
func (u Until) Enough(played int, s *world.Sample) bool {
	if played < u.Min || played < u.Max && (played-u.Min)%u.Step != 0 {
		return false // it is not checked yet
	}
	switch n := s.Episodes(); {
	case n == 0:
		return true
	case n < u.Min:
		return false // the others failed
	case s.Hopeless():
		return true
	}
	return s.Estimate(u.Confidence).Half() <= u.Width
}

// WithDefaults returns u with its defaults filled in.
func (u Until) WithDefaults() Until {
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

// untilPlan is an Until in progress.
type untilPlan struct {
	Until
	cells map[string]*untilCell // by name
	open  []*untilCell          // cells that have not ended, in order
	began bool                  // Next was called before
	found bool                  // an episode had the score
	other []string              // other scores, for an error
	err   error
}

type untilCell struct {
	spec   world.Spec
	sample world.Sample
	dealt  int // repetitions asked for
	until  int // repetitions at the next check
}

// Next takes a stage and asks for more repetitions of the open cells, round after round. When a cell ends depends only on
// its own episodes and their number, so a plan that continues a smaller one ends a cell at the same point.
func (p *untilPlan) Next(last []world.Played) world.Specs {
	for _, l := range last {
		c := p.cells[l.Spec.Cell]
		if c == nil {
			continue // not asked for
		}
		if !p.began { // otherwise it was counted when it was asked for
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
		p.err = fmt.Errorf("until: no episode has a score %s; there are: %s", scoreName(p.Score, p.whose()), strings.Join(p.other, ", "))
		return world.Specs{}
	}
	p.open = slices.DeleteFunc(p.open, func(c *untilCell) bool { return p.Enough(c.dealt, &c.sample) })
	for _, c := range p.open {
		c.until = p.check(c.dealt)
	}
	specs, err := p.rounds()
	p.err = err // always nil: Plan has checked it
	return specs
}

// rounds asks for the missing repetitions of the open cells, in rounds of all cells that miss some.
func (p *untilPlan) rounds() (world.Specs, error) {
	var blocks []world.Block
	for {
		b := world.Block{}
		var missing []*untilCell
		for _, c := range p.open {
			if n := c.until - c.dealt; n > 0 {
				b.Groups = append(b.Groups, world.Group{Spec: c.spec.WithDeal(c.dealt), Size: 1})
				missing = append(missing, c)
				b.Rounds = min(n, cmp.Or(b.Rounds, n))
			}
		}
		if len(missing) == 0 {
			return world.Blocks(blocks...)
		}
		for _, c := range missing {
			c.dealt += b.Rounds
		}
		blocks = append(blocks, b)
	}
}

// check returns the number of repetitions at the next check after dealt.
func (p *untilPlan) check(dealt int) int {
	if dealt < p.Min {
		return p.Min
	}
	last := dealt - (dealt-p.Min)%p.Step
	return last + min(p.Step, p.Max-last)
}

// Err returns why the plan failed, or nil.
func (p *untilPlan) Err() error { return p.err }

// others collects the names of scores for an error.
func (p *untilPlan) others(o world.Outcome) {
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

// scoreName describes a score: points of seat first.
func scoreName(name, whose string) string {
	if whose == "" {
		return name + " of the whole episode"
	}
	return name + " of " + whose
}

// values returns the scores of one episode, for each wanted seat.
func (p *untilPlan) values(l world.Played) (out []float64) {
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
