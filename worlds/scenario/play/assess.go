package play

import (
	"fmt"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/scenario/form"
	"parley/worlds/scenario/text"
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
	asides        []aside
}

// aside is a summary of what was said to one actor in private, and of what it said.
type aside struct {
	who    int
	text   string
	failed llm.Kind
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
			if a.summary = form.ReadText(r, "summary"); a.summary == "" {
				a.summary = g.plainSummary(turn)
			}
		}})
		asks = append(asks, g.asides(turn)...)
	}
	return asks
}

// asides lists the questions for summaries of private talk that is about to leave the
// window. Each actor that took part is asked itself: nobody else may read it.
func (g *game) asides(turn int) []question {
	var asks []question
	for i := range g.cast {
		mem := g.cast[i].past[turn-1]
		if len(mem.exchanges)+len(mem.pacts) == 0 {
			continue
		}
		asks = append(asks, question{g.asideCall(i, turn), func(a *assessment, r world.Reply) {
			one := aside{who: i, text: form.ReadText(r, "summary"), failed: r.Failed}
			if one.text == "" {
				one.text = g.plainAside(i, turn)
			}
			a.asides = append(a.asides, one)
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
		lines = append(lines, text.Cut(now.state, 400))
	}
	return text.Tail(strings.Join(lines, "\n"), form.MaxWords)
}

// plainAside stands in for a summary of private talk that nobody wrote: the beginning of
// what was said and agreed.
func (g *game) plainAside(i, turn int) string {
	mem := g.cast[i].past[turn-1]
	lines := []string{g.cast[i].aside}
	for _, x := range mem.exchanges {
		for _, l := range x.lines {
			lines = append(lines, fmt.Sprintf("Turn %d, %s to %s: %s", turn, g.cast[l.who].Name, g.cast[x.other(l.who)].Name, text.Cut(text.OneLine(l.text), 200)))
		}
	}
	for _, c := range mem.pacts {
		came := "nothing came of it"
		if c.formed {
			came = "agreed: " + text.Cut(text.OneLine(c.agreed), 200)
		}
		lines = append(lines, fmt.Sprintf("Turn %d, a coalition of %s, %s: %s", turn, g.names(c.members), text.Cut(text.OneLine(c.purpose), 200), came))
	}
	return text.Tail(strings.Join(lines, "\n"), form.MaxWords)
}
