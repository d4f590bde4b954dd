package results

import (
	"math"
	"time"

	"parley/llm"
)

// Timeline counts calls over the time played, in a limited number of equal parts.
type Timeline struct {
	Width time.Duration // of a part
	Parts []TimelinePart
}

// TimelinePart is one part of a Timeline.
type TimelinePart struct {
	Calls  int       `json:"calls"`
	Failed int       `json:"failed"`
	Tokens int       `json:"tokens"`
	Cost   llm.Money `json:"cost_usd"`
}

// The maximum number of parts, and their first width.
const (
	timelineParts = 120
	timelineWidth = 10 * time.Millisecond
)

// add counts a reply. While its time is beyond the last part, it joins parts: the width is 10 ms times a power of two.
func (t *Timeline) add(at time.Duration, calls, failed int, usage llm.Usage, cost llm.Money) {
	if t.Width == 0 {
		t.Width = timelineWidth
	}
	for at/t.Width >= timelineParts && t.Width < math.MaxInt64/2 {
		t.Width *= 2
		for i := range t.Parts {
			if i%2 == 1 {
				t.Parts[i/2].plus(t.Parts[i])
			} else {
				t.Parts[i/2] = t.Parts[i]
			}
		}
		t.Parts = t.Parts[:(len(t.Parts)+1)/2]
	}
	i := min(int(at/t.Width), timelineParts-1)
	for len(t.Parts) <= i {
		t.Parts = append(t.Parts, TimelinePart{})
	}
	t.Parts[i].plus(TimelinePart{Calls: calls, Failed: failed, Tokens: usage.Total(), Cost: cost})
}

func (p *TimelinePart) plus(q TimelinePart) {
	p.Calls += q.Calls
	p.Failed += q.Failed
	p.Tokens = llm.AddTokens(p.Tokens, q.Tokens)
	p.Cost = p.Cost.Plus(q.Cost)
}
