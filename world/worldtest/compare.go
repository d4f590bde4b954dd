package worldtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
)

// problem is something wrong in a play.
type problem struct {
	at    callID // or nowhere
	text  string
	key   string // equal for problems that differ only in numbers and names
	stack string // of a panic
}

var digits = regexp.MustCompile("[0-9]+")

// nowhere returns the callID of problems with a whole episode.
func nowhere() callID { return callID{turn: -1} }

// found returns a problem at a call.
func found(at callID, format string, args ...any) problem {
	return problem{at: at, text: fmt.Sprintf(format, args...), key: format}
}

// Error implements error.
func (p problem) Error() string {
	text := p.text
	if p.at != nowhere() {
		text = p.at.String() + ": " + text
	}
	if p.stack != "" {
		text += "\n" + p.stack
	}
	return text
}

// keyOf returns equal keys for errors about the same problem in different plays.
func keyOf(err error) string {
	if p, ok := errors.AsType[problem](err); ok {
		return p.key
	}
	return err.Error()
}

// say records the notes and calls of a turn, for comparison.
func (g *game) say(at callID, t world.Turn) {
	var b strings.Builder
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "note %s of %q: %s\n", n.Kind, n.Seat, n.Data)
	}
	for _, c := range t.Calls {
		fmt.Fprintln(&b, describe(c))
	}
	fmt.Fprintf(&b, "forks %d", len(t.Forks))
	g.said[at] = b.String()
}

// describe writes everything in a call that can make a difference, the messages first: an author knows these.
func describe(c world.Call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "call %s of %q\n", c.Label, c.Seat)
	for _, m := range c.Ask.Messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Text())
	}
	req, err := json.Marshal(c.Ask)
	if err != nil {
		req = []byte(err.Error())
	}
	fmt.Fprintf(&b, "request %s\nprefix %d, session %q, order %d", req, c.Ask.Prefix, c.Ask.Session, c.Ask.Order)
	if c.Act != nil {
		fmt.Fprintf(&b, "\nact %s %s", c.Act.Name, c.Act.Body)
	}
	return b.String()
}

// same compares two plays of one episode.
func (g *game) same(other *game) error {
	var all []callID
	for p := range g.said {
		all = append(all, p)
	}
	for p := range other.said {
		if _, ok := g.said[p]; !ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b callID) int {
		if c := strings.Compare(a.strand, b.strand); c != 0 {
			return c
		}
		return a.turn - b.turn
	})
	for _, p := range all {
		a, aok := g.said[p]
		b, bok := other.said[p]
		if aok != bok {
			return found(p, "is played in one of two plays only")
		}
		if a != b {
			return found(p, "%s", differ(a, b))
		}
	}
	if g.outcome != other.outcome {
		return found(nowhere(), "the outcome: %s", differ(g.outcome, other.outcome))
	}
	return nil
}

// differ shows the difference in the first line that differs, with some text before it.
func differ(a, b string) string {
	a, b = firstLines(a, b)
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	part := func(s string) string {
		text := strings.ToValidUTF8(s[max(0, start-shown/2):min(len(s)-end, start+shown)], "")
		if start > shown/2 {
			text = "…" + text
		}
		if end > 0 || len(s)-end > start+shown {
			text += "…"
		}
		return text
	}
	return fmt.Sprintf("%q in one play, %q in another", part(a), part(b))
}

// firstLines returns the first lines in which two texts differ. "": the text has no such line.
func firstLines(a, b string) (x, y string) {
	for x == y && a+b != "" {
		x, a, _ = strings.Cut(a, "\n")
		y, b, _ = strings.Cut(b, "\n")
	}
	return x, y
}

// shown is how many bytes of a difference are shown, and twice the number of bytes before it.
const shown = 60

// failed returns the reply to a failed call.
func failed(k llm.Kind) world.Reply { return world.Reply{Failed: k} }
