package worldtest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

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
	case !g.declared[at].Any() && (sc.Value < g.declared[at].Low || sc.Value > g.declared[at].High):
		g.fail("score %s of %q is %v, and is declared to be from %v to %v", sc.Name, sc.Seat, sc.Value, g.declared[at].Low, g.declared[at].High)
	}
}
