package worldtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
)

// callID identifies a call by its strand, its turn, and its index in the turn.
type callID struct {
	strand      string
	turn, index int
}

// String omits the first strand, and the index if it is negative.
func (p callID) String() string {
	text := fmt.Sprintf("turn %d", p.turn)
	if p.strand != "" {
		text = fmt.Sprintf("strand %q, %s", p.strand, text)
	}
	if p.index >= 0 {
		text += fmt.Sprintf(", call %d", p.index)
	}
	return text
}

// rand returns a source of chance for the answer to the call.
func (p callID) rand(deal int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "strand %q, turn %d, call %d", p.strand, p.turn, p.index)
	return rand.New(rand.NewPCG(uint64(deal), h.Sum64()))
}

// answerer replies to a call.
type answerer func(p callID, c world.Call) world.Reply

// game is an episode in progress, played as the engine plays it.
type game struct {
	seats  []string
	limit  int // of calls
	answer answerer
	// declared are the scores that the kind declares; nil: it declares none.
	declared []world.Measure
	// pick chooses which of n ready strands to resume.
	pick func(n int) int

	ready    []*strand
	live     map[*world.Strand]bool
	answered int
	asked    []asked
	said     map[callID]string // the notes and calls of each turn
	notes    []world.Note
	outcome  string
	result   world.Outcome
	done     bool
	problems []error
}

// strand is a strand and what it waits for.
type strand struct {
	*world.Strand
	parent  *strand
	missing int
	replies []world.Reply
}

// asked is a call with the digest of its request.
type asked struct {
	at   callID
	call *world.Call
	was  [32]byte
}

func inOrder(int) int { return 0 }

func newGame(w world.World, deal int, seats []string, limit int, answer answerer) *game {
	g := &game{seats: seats, limit: limit, answer: answer, pick: inOrder, live: map[*world.Strand]bool{}, said: map[callID]string{}}
	s := &strand{Strand: world.Begin(w, world.Deal{Seed: 1, Number: deal})}
	g.live[s.Strand] = true
	g.ready = []*strand{s}
	return g
}

// play plays to the end or to the first problem, and frees the rest.
func (g *game) play() {
	for g.step() {
	}
	g.stop()
}

// step resumes one strand, and reports whether there is more to do.
func (g *game) step() bool {
	if len(g.ready) == 0 || g.done || len(g.problems) > 0 {
		return false
	}
	i := g.pick(len(g.ready))
	s := g.ready[i]
	g.ready = slices.Delete(g.ready, i, i+1)
	replies := s.replies
	s.replies = nil
	g.take(s, s.Next(replies))
	return true
}

// stop stops the game, as a killed run does.
func (g *game) stop() {
	for s := range g.live {
		s.Stop()
	}
	for _, a := range g.asked {
		if a.call.Ask.Digest() != a.was {
			g.failAt(a.at, "the world changed a request after asking it")
		}
	}
}

func (g *game) fail(format string, args ...any) { g.failAt(nowhere(), format, args...) }

func (g *game) failAt(at callID, format string, args ...any) {
	g.problems = append(g.problems, found(at, format, args...))
}

func (g *game) take(s *strand, t world.Turn) {
	at := callID{s.Path, t.Number, -1}
	g.say(at, t)
	g.notes = append(g.notes, t.Notes...)
	switch {
	case t.Panic != "":
		delete(g.live, s.Strand)
		g.problems = append(g.problems, problem{at: at, key: digits.ReplaceAllString(t.Panic, "0"), text: "panic: " + t.Panic, stack: t.Stack})
	case t.Done:
		delete(g.live, s.Strand)
		g.ended(s, t.Outcome)
	case len(t.Forks) > 0:
		s.missing = len(t.Forks)
		for _, f := range t.Forks {
			g.live[f] = true
			g.ready = append(g.ready, &strand{Strand: f, parent: s})
		}
	default:
		g.reply(s, t)
		g.ready = append(g.ready, s)
	}
}

// reply answers the calls of a turn.
func (g *game) reply(s *strand, t world.Turn) {
	s.replies = make([]world.Reply, len(t.Calls))
	for i, c := range t.Calls {
		at := callID{s.Path, t.Number, i}
		if !slices.Contains(g.seats, c.Seat) {
			g.failAt(at, "asks seat %q: the kind's seats are %s", c.Seat, strings.Join(g.seats, ", "))
		}
		if c.Label == "" {
			g.failAt(at, "the call of seat %q has no Label: statistics are kept by it", c.Seat)
		}
		if c.Act == nil && len(c.Ask.Messages) == 0 {
			g.failAt(at, "asks nothing: no messages")
		}
		if c.Ask.Schema != nil && !json.Valid(c.Ask.Schema.JSON) {
			g.failAt(at, "its schema is not JSON")
		}
		s.replies[i] = g.answer(at, c)
		g.asked = append(g.asked, asked{at, &t.Calls[i], c.Ask.Digest()})
		if g.answered++; g.answered == g.limit {
			g.failAt(at, "%d calls and no end", g.limit)
		}
	}
}

// ended handles a strand that is done.
func (g *game) ended(s *strand, o world.Outcome) {
	if p := s.parent; p != nil {
		if p.missing--; p.missing == 0 {
			g.ready = append(g.ready, p)
		}
		return
	}
	g.done, g.result = true, o
	if o.Failed != "" && len(o.Scores) > 0 {
		g.fail("the outcome failed (%s) but has scores: %v", o.Failed, o.Scores)
	}
	for _, sc := range o.Scores {
		switch {
		case sc.Seat != "" && !slices.Contains(g.seats, sc.Seat):
			g.fail("the outcome scores seat %q: the kind's seats are %s", sc.Seat, strings.Join(g.seats, ", "))
		case sc.Name == "":
			g.fail("the outcome has a score without a name")
		case math.IsNaN(sc.Value) || math.IsInf(sc.Value, 0):
			g.fail("score %s of %q is %v: want a number", sc.Name, sc.Seat, sc.Value)
			return
		}
		g.check(sc)
	}
	b, err := json.Marshal(o)
	if err != nil {
		g.fail("the outcome is not JSON: %v", err)
	}
	g.outcome = string(b)
}

// check compares a score with what the kind declares.
func (g *game) check(sc world.Score) {
	if g.declared == nil {
		return
	}
	at := slices.IndexFunc(g.declared, func(m world.Measure) bool {
		return m.Name == sc.Name && (sc.Seat == "" && len(m.Seats) == 0 || slices.Contains(m.Seats, sc.Seat))
	})
	switch {
	case at < 0:
		g.fail("the outcome has a score %s of %q, which the kind does not declare", sc.Name, sc.Seat)
	case !g.declared[at].Holds(sc.Value):
		g.fail("score %s of %q is %v, and its declared range is %s", sc.Name, sc.Seat, sc.Value, g.declared[at].Bounds)
	}
}

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
