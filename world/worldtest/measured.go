package worldtest

import (
	"fmt"
	"strings"

	"parley/llm"
	"parley/world"
)

// provider is a useless model server, as a world sees it: an answer that does not follow its schema has become a
// failure.
type provider struct {
	name   string
	text   string   // its answer to everything
	failed llm.Kind // or the kind of its failures
}

func useless() []provider {
	return []provider{
		{name: "always fails", failed: llm.KindTimeout},
		{name: "always refuses", failed: llm.KindRefused},
		{name: "always answers hi", text: "hi"},
		{name: "always answers an empty text"},
	}
}

// answer returns the provider's answer to an ask.
func (p provider) answer(c world.Call) world.Reply {
	switch {
	case p.failed != "":
		return failed(p.failed)
	case c.Ask.Schema != nil:
		return failed(llm.KindInvalid)
	default:
		return world.Reply{Text: p.text, Finish: llm.FinishStop}
	}
}

// measured plays against useless providers. Acts succeed.
func (e *exercise) measured() (bad []error) {
	for _, p := range useless() {
		if err := e.useless(p); err != nil {
			bad = append(bad, fmt.Errorf("a provider that %s: %w", p.name, err))
		}
	}
	return bad
}

func (e *exercise) useless(p provider) error {
	asks, said := 0, 0 // said: answered with a text that is not empty
	var last llm.Kind
	answer := func(at callID, c world.Call) world.Reply {
		if c.Act != nil {
			return e.good(0)(at, c)
		}
		asks++
		r := p.answer(c)
		if r.OK() && (r.Text != "" || e.EmptyIsAMove) {
			said++
		}
		if !r.OK() {
			last = r.Failed
		}
		return r
	}
	first, err := e.played(0, answer)
	if err != nil {
		return err
	}
	o := first.result
	switch {
	case asks == 0 || said > 0:
	case o.Failed == "":
		return found(nowhere(), "not one of %d calls said anything, and the episode has not failed: scores %v", asks, o.Scores)
	case last != "" && !strings.Contains(o.Failed, string(last)):
		return found(nowhere(), "the episode failed (%q), and that does not name how its calls failed: %s", o.Failed, last)
	}
	again, err := e.played(0, answer)
	if err != nil {
		return err
	}
	return first.same(again)
}
