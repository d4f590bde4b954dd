package world

// Beside plays several plans at the same time: a stage is the next stage of each that has
// one, in order. Plans of different lengths end by themselves.
func Beside(plans ...Plan) Plan {
	if len(plans) == 1 {
		return plans[0]
	}
	b := &beside{}
	for _, p := range plans {
		b.open = append(b.open, &besidePlan{plan: p})
	}
	return b
}

// beside is plans being played.
type beside struct {
	open []*besidePlan // that have not ended
}

type besidePlan struct {
	plan  Plan
	asked int // episodes of the stage that is played
}

// Next hands each plan its part of the stage and puts together what they want next.
func (b *beside) Next(last []Played) Specs {
	var parts []Specs
	var open []*besidePlan
	for _, p := range b.open {
		n := min(p.asked, len(last))
		next := p.plan.Next(last[:n:n])
		last = last[n:]
		if p.asked = next.Len(); p.asked > 0 {
			parts = append(parts, next)
			open = append(open, p)
		}
	}
	b.open = open
	return Join(parts...)
}
