package diplomacy

import (
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
	"parley/worlds/diplomacy/rules"
)

// answerer replies to calls.
type answerer func(c world.Call) world.Reply

// played is a finished game.
type played struct {
	calls   []world.Call
	replies []world.Reply
	notes   []world.Note
	outcome world.Outcome
	depth   int // of the longest chain of calls that wait for each other
}

// progress is a strand that is being played, and the length of the chain of calls before it.
type progress struct {
	strand  *world.Strand
	parent  *progress
	replies []world.Reply
	depth   int
	missing int
	deepest int // depth of its forks
}

// playGame plays a game. The function change sets params that differ from the defaults.
func playGame(t testing.TB, deal int, lineup world.Lineup, answer answerer, change func(*Params)) *played {
	t.Helper()
	d := newDefinition()
	params := d.Defaults()
	if change != nil {
		change(params)
	}
	w, err := d.World(params, lineup)
	if err != nil {
		t.Fatal(err)
	}
	return playWorld(t, w, deal, lineup, d.Bots(), answer)
}

func playWorld(t testing.TB, w world.World, deal int, lineup world.Lineup, bots map[string]world.Bot, answer answerer) *played {
	t.Helper()
	p := &played{}
	root := &progress{strand: world.Begin(w, world.Deal{Seed: 1, Number: deal})}
	ready := []*progress{root}
	for len(ready) > 0 {
		l := ready[0]
		ready = ready[1:]
		turn := l.strand.Next(l.replies)
		l.replies = nil
		p.notes = append(p.notes, turn.Notes...)
		p.depth = max(p.depth, l.depth)
		switch {
		case turn.Panic != "":
			t.Fatalf("panic: %s\n%s", turn.Panic, turn.Stack)
		case turn.Done && l.parent == nil:
			p.outcome = turn.Outcome
		case turn.Done:
			up := l.parent
			up.deepest = max(up.deepest, l.depth)
			if up.missing--; up.missing == 0 {
				up.depth, up.deepest = up.deepest, 0
				ready = append(ready, up)
			}
		case len(turn.Forks) > 0:
			l.missing = len(turn.Forks)
			for _, f := range turn.Forks {
				ready = append(ready, &progress{strand: f, parent: l, depth: l.depth})
			}
		default:
			l.depth++
			for _, c := range turn.Calls {
				reply := answer
				if bot := bots[lineup[c.Seat].Bot]; bot != nil {
					reply = answerer(bot)
				}
				r := reply(c)
				p.calls, p.replies = append(p.calls, c), append(p.replies, r)
				l.replies = append(l.replies, r)
			}
			ready = append(ready, l)
		}
	}
	return p
}

// simulated answers as the simulated provider does.
func simulated(c world.Call) world.Reply {
	h := fnv.New64a()
	for _, m := range c.Ask.Messages {
		_, _ = h.Write([]byte(m.Text()))
	}
	_, _ = h.Write([]byte(c.Seat))
	text, ok := standInAnswer("medium", &c.Ask, h.Sum64())
	if !ok {
		return world.Reply{Failed: llm.KindInvalid}
	}
	return world.Reply{Text: text, JSON: json.RawMessage(text), Finish: llm.FinishStop}
}

// allBots returns a lineup with a bot in every seat.
func allBots(bot string) world.Lineup {
	l := world.Lineup{}
	for _, seat := range rules.PowerNames() {
		l[seat] = world.Agent{Name: bot, Bot: bot}
	}
	return l
}

// threePowers starts in a fall in which a unit is dislodged and a power may build, so that a short
// game has every kind of phase.
const threePowers = `"position":{"name":"F1903M","units":{"FRANCE":["A PAR","A BUR","F BRE"],"GERMANY":["A MUN","A RUH"],"ITALY":["A MAR","A TYR"]},` +
	`"centers":{"FRANCE":["PAR","BRE","BEL","SPA"],"GERMANY":["MUN","KIE"],"ITALY":["MAR","VEN","ROM"]}}`

func TestKind(t *testing.T) {
	t.Parallel()
	for name, params := range map[string]string{
		"press":    `{"rounds":2,"end_phase":"S1904M","planning":true,"judge":true,"draw_from":1904,` + threePowers + `}`,
		"no press": `{"rounds":0,"end_phase":"S1904M",` + threePowers + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worldtest.Exercise(t, Kind(), worldtest.Options{Params: params, Deals: 1, Answer: func(c world.Call, _ *rand.Rand) world.Reply {
				return simulated(c)
			}})
		})
	}
}

// BenchmarkGame plays a press game of three rounds to 1905 with replies that take no time, and
// reports the time of a call in the world itself.
func BenchmarkGame(b *testing.B) {
	recorded := playGame(b, 1, world.Lineup{}, simulated, func(p *Params) { p.MaxYear = 1905 })
	b.ReportAllocs()
	for b.Loop() {
		i := 0
		playGame(b, 1, world.Lineup{}, func(world.Call) world.Reply { i++; return recorded.replies[i-1] }, func(p *Params) { p.MaxYear = 1905 })
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(recorded.calls)), "µs/call")
}
