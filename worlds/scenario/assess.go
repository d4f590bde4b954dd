package scenario

import (
	"strings"

	"parley/llm"
	"parley/world"
)

// question is a call about a turn, and what is made of its reply.
type question struct {
	call world.Call
	take func(*assessment, world.Reply)
}

// assessment is what was asked about a turn.
type assessment struct {
	values   []reading
	findings []finding

	summary       string
	summarized    int // up to which turn; 0: there is none
	summaryFailed llm.Kind
}

// assessing lists what is asked about the last turn that was told: metrics and checks
// and, unless it is the last, a summary of what is about to leave the window.
func (g *game) assessing(last bool) []question {
	asks := g.measuring(g.now())
	if !g.Validation.LastOnly {
		asks = append(asks, g.checking(g.now())...)
	}
	if turn := g.now() + 1 - g.Window; !last && turn > g.summarized && g.now()+2 <= g.Turns {
		asks = append(asks, question{g.summaryCall(turn), func(a *assessment, r world.Reply) {
			a.summarized, a.summaryFailed = turn, r.Failed
			if a.summary = readText(r, "summary"); a.summary == "" {
				a.summary = g.plainSummary(turn)
			}
		}})
	}
	return asks
}

// assess asks all of it at once.
func (g *game) assess(t *world.Table, asks []question) assessment {
	var a assessment
	calls := make([]world.Call, len(asks))
	for i, q := range asks {
		calls[i] = q.call
	}
	for i, r := range t.Ask(calls...) {
		asks[i].take(&a, r)
	}
	return a
}

// plainSummary stands in for a summary that nobody wrote: what changed, and no more.
func (g *game) plainSummary(turn int) string {
	now := g.turns[turn]
	lines := append([]string{g.summary}, now.changes...)
	if len(now.changes) == 0 {
		lines = append(lines, cut(now.state, 400))
	}
	return tail(strings.Join(lines, "\n"), mostWords)
}
