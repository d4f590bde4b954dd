package journaltest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Run generates n entries of a run. Their order is as in a real run, with second attempts, late
// replies, and processes that are killed. Their contents are anything that the types allow. The
// same seed gives the same entries.
func Run(seed uint64, n int) []journal.Entry {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), open: map[int][]journal.Replied{}, attempt: map[int]int{}}
	g.add(&journal.Begun{
		Version: journal.Version, Run: "r" + g.word(), Tool: "parley 0", At: g.time(), Kind: "secrets", KindVersion: 3,
		Seed: g.Uint64(), Agents: []world.Agent{{Name: "a", Model: "sim/small", Temperature: g.float()}, {Name: "b", Bot: "silent"}},
		Plan: json.RawMessage("{\n  \"kept\": \"to the <byte>\"\n}"), Prices: map[string]json.RawMessage{"sim/small": json.RawMessage(`{"Input":0.5}`), "sim/new": json.RawMessage("null")},
	}, &journal.Opened{At: g.time()})
	g.stage()
	for len(g.entries) < n {
		g.step()
	}
	return g.entries[:n]
}

type generator struct {
	*rand.Rand
	entries  []journal.Entry
	episodes int
	stages   int
	attempt  map[int]int
	open     map[int][]journal.Replied // calls without a reply, by episode
	grown    []journal.Growth
}

func (g *generator) add(entries ...journal.Entry) { g.entries = append(g.entries, entries...) }

func (g *generator) step() {
	episode := g.IntN(g.episodes)
	switch k := g.IntN(40); {
	case k == 0:
		g.stage()
	case k == 1:
		g.add(&journal.Closed{At: g.time(), State: []journal.State{journal.Stopped, journal.Complete}[g.IntN(2)], Reason: journal.Reason{Kind: journal.ByCall, Detail: g.utf()}, Lost: max(0, g.IntN(20)-10)})
		g.grow()
		g.add(&journal.Opened{At: g.time()})
	case k == 2:
		g.add(&journal.Opened{At: g.time(), Lost: g.IntN(9), Cost: llm.Money(g.Int64N(1 << 60))})
	case k == 3 && g.IntN(2) == 0:
		g.add(&journal.Exposed{Worst: llm.Money(g.Int64N(1<<60) * g.Int64N(2)), Worker: strconv.Itoa(g.IntN(3))})
	case k == 3:
		g.add(&journal.Exposed{Worst: llm.Money(g.Int64N(1 << 60))})
	case k == 4 && g.IntN(2) == 0:
		g.add(&journal.Steered{At: g.time(), Verb: journal.SteerSet, By: g.utf(), Detail: g.utf()})
		g.add(&journal.Steered{At: g.time(), Verb: journal.SteerChange, Detail: g.utf(), Change: json.RawMessage(`{"add":[1]}`), Stage: g.IntN(9)})
	case k == 4:
		g.attempt[episode]++
	case k == 5:
		g.batch()
	case k < 8:
		g.end(episode)
	case k < 20:
		g.turn(episode)
	default:
		g.reply(episode)
	}
}

// grow sometimes gives the run another plan, in which cells have other names.
func (g *generator) grow() {
	if g.IntN(2) == 0 {
		return
	}
	first, _ := g.entries[0].(*journal.Begun)
	larger := *first
	g.grown = append(g.grown, journal.Growth{At: g.time(), Episodes: g.episodes})
	larger.Grown, larger.Cells = slices.Clone(g.grown), map[string]string{"": "alone", "a×b": "a×b, n=1"}
	larger.Code, larger.Edited = []journal.Code{{Name: "a.py:A", Language: "python 3", Files: map[string]string{"a.py": g.word()}}}, slices.Clone(g.grown)
	larger.Again = []journal.Again{{At: g.time(), Episodes: g.episodes, Through: len(g.entries), Edited: g.IntN(2) == 0}}
	larger.Measures = []world.Measure{{Name: "points", Seats: []string{"a"}, Rivals: true, Bounds: world.AtLeast0()}, {Name: "length"}}
	g.add(&larger)
}

// batch takes a batch one step further, or begins one.
func (g *generator) batch() {
	b := &journal.Batched{At: g.time(), Key: fmt.Sprintf("key%d", g.IntN(6))}
	switch b.Step = []journal.Step{journal.BatchIntended, journal.BatchUploaded, journal.BatchCreated, journal.BatchClosed}[g.IntN(4)]; b.Step {
	case journal.BatchIntended:
		b.Provider, b.Model, b.Lines = "lab", "lab/any", []string{g.word(), g.word()}
		b.Worst, b.WorstLine = llm.Money(g.Int64N(1<<60)), llm.Money(g.Int64N(1<<60))
	case journal.BatchUploaded:
		b.File = g.utf()
	case journal.BatchCreated:
		b.Batch = g.utf()
	case journal.BatchClosed:
		b.Why = g.utf()
	}
	g.add(b)
}

func (g *generator) stage() {
	st := &journal.Staged{Stage: g.stages, First: g.episodes}
	// No two blocks of one round are adjacent: a journal may join such blocks.
	blocks := []world.Block{{Rounds: 1 + g.IntN(3)}, {Rounds: 2}, {Rounds: 1}}[:1+g.IntN(3)]
	for i := range blocks {
		blocks[i].Groups = g.groups()
	}
	specs, err := world.Blocks(blocks...)
	if err != nil {
		panic(err) // not reached: they are small
	}
	st.Specs = specs
	g.episodes += specs.Len()
	g.stages++
	g.add(st)
}

func (g *generator) groups() []world.Group {
	groups := make([]world.Group, 1+g.IntN(4))
	for i := range groups {
		s := world.Spec{Kind: "secrets", Lineup: map[string]string{"host \"q\"": "a", "guest": "b"}, Deal: g.IntN(4)}
		if g.IntN(3) > 0 {
			s.Params = json.RawMessage(fmt.Sprintf(`{"n": %d}`, g.IntN(3)))
		}
		if g.IntN(2) > 0 {
			s.Cell = "a×b"
		}
		groups[i] = world.Group{Spec: s, Size: 1 + g.IntN(2)}
	}
	return groups
}

func (g *generator) turn(episode int) {
	t := &journal.Turned{Turn: journal.Turn{Episode: episode, Attempt: g.attempt[episode], Turn: g.IntN(50)}, Calls: g.IntN(4)}
	if g.IntN(3) == 0 {
		t.Strand = "4.2/"
	}
	for i := range t.Digest {
		t.Digest[i] = byte(g.Uint32())
	}
	for range g.IntN(3) {
		t.Notes = append(t.Notes, world.Note{Kind: "message", Seat: g.word(), Data: json.RawMessage(`{"to":"<all>","text":"é"}`)})
	}
	for i := range t.Calls {
		g.open[episode] = append(g.open[episode], journal.Replied{Turn: t.Turn, Index: i})
	}
	g.add(t)
}

func (g *generator) reply(episode int) {
	if len(g.open[episode]) == 0 {
		return
	}
	i := g.IntN(len(g.open[episode]))
	r := g.open[episode][i]
	g.open[episode] = slices.Delete(g.open[episode], i, i+1)
	r.Seat, r.Label, r.Agent, r.At, r.Copied = g.word(), g.word(), "a", g.time(), g.IntN(9) == 0
	switch g.IntN(6) {
	case 0:
		r.Act = &world.Act{Name: "step", Body: json.RawMessage(" {\"move\" : 3}")}
		r.Response = &llm.Response{JSON: json.RawMessage("[1, 2 ]")}
	case 1:
		r.Response = &llm.Response{Text: g.text()} // a bot's
	case 2:
		r.Request, r.Error = g.request(), g.failure()
	default:
		r.Request, r.Response = g.request(), g.response()
	}
	g.add(&r)
}

func (g *generator) end(episode int) {
	e := &journal.Ended{Episode: episode, Attempt: g.attempt[episode], At: g.time(), Outcome: world.Outcome{Data: json.RawMessage(nil)}, Chance: g.IntN(2) == 0}
	if g.IntN(2) == 0 {
		binary.BigEndian.PutUint64(e.Play[:], g.Uint64())
	}
	for range g.IntN(3) {
		e.Outcome.Scores = append(e.Outcome.Scores, world.Score{Seat: g.word(), Name: "won", Value: g.NormFloat64()})
	}
	if g.IntN(2) > 0 {
		e.Outcome.Data = json.RawMessage(`{"a": [1,2 , 3], "b": "<x>"}`)
	}
	if g.IntN(4) == 0 {
		e.Outcome.Failed, e.Stack = "panic: "+g.text(), g.text()
	}
	g.add(e)
	g.attempt[episode]++ // later entries are of another attempt
	g.attempt[episode] -= g.IntN(2)
}

func (g *generator) time() time.Time { return time.Unix(0, g.Int64N(1<<61)).UTC() }

func (g *generator) float() *float64 {
	if g.IntN(2) == 0 {
		return nil
	}
	f := float64(g.IntN(3)) / 2
	return &f
}

func (g *generator) word() string { return []string{"", "host", "guest", "GERMANY"}[g.IntN(4)] }

// text is anything that a model may say.
func (g *generator) text() string {
	some := []string{"", "hello", "{\"a\": 1}", "'); DROP TABLE replies; --", "\x00\x01", "\xff\xfe not text", "日本語 🎲", "<b>&amp;</b>", "a longer text that is said more than once"}
	s := some[g.IntN(len(some))]
	if g.IntN(3) == 0 {
		s += fmt.Sprint(g.Uint64())
	}
	return s
}

// utf is text that JSON can hold.
func (g *generator) utf() string { return fmt.Sprintf("“%x” <&> \n", g.IntN(1000)) }
