package scenario

import (
	"fmt"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/scenario/script"
)

// question is a call about a turn, and the function that takes its reply.
type question struct {
	call world.Call
	take func(*assessment, world.Reply)
}

// assessment has the answers to the questions about a turn.
type assessment struct {
	values   []reading
	findings []finding

	summary       string
	summarized    int // the last turn of the summary; 0 without a summary
	summaryFailed llm.Kind
	asides        []aside
}

// aside is a summary of the private talk of one actor.
type aside struct {
	who    int
	text   string
	failed llm.Kind
}

// assessing returns the questions about the current turn: metrics and checks
// and, unless it is the last turn, a summary of the turn that is about to leave the window.
func (g *game) assessing(last bool) []question {
	asks := g.measuring(g.now())
	if !g.Validation.LastOnly {
		asks = append(asks, g.checking(g.now())...)
	}
	if turn := g.now() + 1 - g.Window; !last && turn > g.summarized && g.now()+2 <= g.Turns {
		asks = append(asks, question{g.summaryCall(turn), func(a *assessment, r world.Reply) {
			a.summarized, a.summaryFailed = turn, r.Failed
			if a.summary = script.ReadText(r, "summary"); a.summary == "" {
				a.summary = g.plainSummary(turn)
			}
		}})
		asks = append(asks, g.asides(turn)...)
	}
	return asks
}

// asides returns the questions for summaries of private talk that is about to leave the
// window. Each actor that took part summarizes its own talk, because no other may read it.
func (g *game) asides(turn int) []question {
	var asks []question
	for i := range g.cast {
		mem := g.cast[i].past[turn-1]
		if len(mem.exchanges)+len(mem.pacts) == 0 {
			continue
		}
		asks = append(asks, question{g.asideCall(i, turn), func(a *assessment, r world.Reply) {
			one := aside{who: i, text: script.ReadText(r, "summary"), failed: r.Failed}
			if one.text == "" {
				one.text = g.plainAside(i, turn)
			}
			a.asides = append(a.asides, one)
		}})
	}
	return asks
}

// assess asks all questions at once.
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

// plainSummary replaces a summary that failed: only what changed.
func (g *game) plainSummary(turn int) string {
	now := g.turns[turn]
	lines := append([]string{g.summary}, now.changes...)
	if len(now.changes) == 0 {
		lines = append(lines, script.Cut(now.state, 400))
	}
	return script.Tail(strings.Join(lines, "\n"), script.MaxWords)
}

// plainAside replaces a summary of private talk that failed: the beginning of
// what was said and agreed.
func (g *game) plainAside(i, turn int) string {
	mem := g.cast[i].past[turn-1]
	lines := []string{g.cast[i].aside}
	for _, x := range mem.exchanges {
		for _, l := range x.lines {
			lines = append(lines, fmt.Sprintf("Turn %d, %s to %s: %s", turn, g.cast[l.who].Name, g.cast[x.other(l.who)].Name, script.Cut(script.OneLine(l.text), 200)))
		}
	}
	for _, c := range mem.pacts {
		result := "nothing came of it"
		if c.formed {
			result = "agreed: " + script.Cut(script.OneLine(c.agreed), 200)
		}
		lines = append(lines, fmt.Sprintf("Turn %d, a coalition of %s, %s: %s", turn, g.names(c.members), script.Cut(script.OneLine(c.purpose), 200), result))
	}
	return script.Tail(strings.Join(lines, "\n"), script.MaxWords)
}
