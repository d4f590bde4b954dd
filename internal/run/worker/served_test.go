package worker_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"

	"parley/internal/run/worker"
	"parley/llm"
	"parley/world"
)

// served is a worker in Go: it plays the worlds of a kind in Go as the protocol says. It is written from
// docs/reference/worker-protocol.md, with maps for messages, so that it shares no code with the package.
type served struct {
	kind world.Kind
	// dies is how many requests a worker answers before it ends; nil: all.
	dies func() int
	// poison reports whether a request ends the worker; nil: none does.
	poison func(r map[string]any) bool
	// files are the files of the code of a worker, by how many were started before; nil: none.
	files func(before int) map[string]string
	// delay is called before a request is answered; nil: nothing.
	delay func(r map[string]any)
	// twist changes a step before it is sent; nil: nothing.
	twist func(op string, step map[string]any)

	mu      sync.Mutex
	started int
	acts    int
}

type object = map[string]any

// start starts a worker.
func (s *served) start() (worker.Started, error) {
	ours, theirs := net.Pipe()
	s.mu.Lock()
	before := s.started
	s.started++
	s.mu.Unlock()
	go s.serve(theirs, before)
	return worker.Started{Conn: ours}, nil
}

// live is an episode in a worker.
type live struct {
	strands map[string]*world.Strand
	turns   map[string]world.Turn
	said    map[string]int // messages that the engine has of a talk, by seat
}

func (s *served) serve(conn net.Conn, before int) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	var hello struct{ Parley int }
	if line, err := in.ReadBytes('\n'); err != nil || json.Unmarshal(line, &hello) != nil || hello.Parley != 1 {
		return
	}
	var files map[string]string
	if s.files != nil {
		files = s.files(before)
	}
	say(conn, object{"parley": 1, "language": "go", "version": 1, "files": files, "doc": "Test.", "durable": "turn", "params": []object{
		{"name": "rounds", "type": "int", "default": 3, "doc": "How many."},
		{"name": "mood", "type": object{"one_of": []string{"calm", "bold"}}, "default": "calm"},
	}})
	left := 1 << 30
	if s.dies != nil {
		left = s.dies()
	}
	episodes := map[string]*live{}
	defer func() {
		for _, ep := range episodes {
			ep.stop()
		}
	}()
	for line := range buffered(in) {
		if left--; left < 0 {
			return
		}
		var r object
		if json.Unmarshal(line, &r) != nil {
			return
		}
		if s.delay != nil {
			s.delay(r)
		}
		if s.poison != nil && s.poison(r) {
			return
		}
		if step := s.answer(episodes, r, line); step != nil {
			if s.twist != nil {
				s.twist(r["op"].(string), step)
			}
			rest, _ := json.Marshal(step)
			if string(rest) == "{}" {
				rest = []byte(",}")
			}
			fmt.Fprintf(conn, "{\"id\":%v,%s\n", r["id"], rest[1:])
		}
	}
}

// buffered reads lines ahead, as the buffer of a socket does.
func buffered(in *bufio.Reader) <-chan []byte {
	lines := make(chan []byte, 10_000)
	go func() {
		defer close(lines)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			lines <- line
		}
	}()
	return lines
}

func say(w io.Writer, v any) {
	b, _ := json.Marshal(v)
	_, _ = w.Write(append(b, '\n'))
}

func text(v any) string { s, _ := v.(string); return s }

// answer returns the answer to a request, or nil.
func (s *served) answer(episodes map[string]*live, r object, line []byte) object {
	key, path := text(r["episode"]), text(r["strand"])
	ep := episodes[key]
	switch r["op"] {
	case "seats":
		if n := r["params"].(object)["rounds"].(float64); n < 1 {
			return object{"error": object{"text": "want 1 or more", "param": "rounds"}}
		}
		return object{"seats": []string{"a", "b"}, "measures": []object{{"name": "sum", "low": 0, "high": 1e9}}}
	case "begin":
		var b struct {
			Params json.RawMessage
			Seed   string
			Deal   int
		}
		_ = json.Unmarshal(line, &b)
		seed, _ := strconv.ParseUint(b.Seed, 10, 64)
		p, err := s.kind.Read(b.Params)
		if err != nil {
			return object{"error": object{"text": err.Error()}}
		}
		w, err := s.kind.World(p, nil)
		if err != nil {
			return object{"error": object{"text": err.Error()}}
		}
		ep = &live{strands: map[string]*world.Strand{"": world.Begin(w, world.Deal{Seed: seed, Number: b.Deal})}, turns: map[string]world.Turn{}, said: map[string]int{}}
		episodes[key] = ep
		return ep.next("", nil)
	case "replies":
		var b struct{ Replies []world.Reply }
		_ = json.Unmarshal(line, &b)
		return ep.next(path, b.Replies)
	case "strand", "joined":
		return ep.next(path, nil)
	case "act":
		s.mu.Lock()
		s.acts++
		s.mu.Unlock()
		return object{"result": r["act"].(object)["body"]}
	case "refused":
		return object{"error": object{"text": "game.py:3: " + text(r["text"]), "trace": "Traceback"}}
	case "leave":
		if ep != nil {
			ep.stop()
		}
		delete(episodes, key)
	}
	return nil
}

func (l *live) stop() {
	for _, s := range l.strands {
		s.Stop()
	}
}

// next plays a strand until it waits.
func (l *live) next(path string, replies []world.Reply) object {
	t := l.strands[path].Next(replies)
	step := object{}
	var notes []any
	for _, n := range t.Notes {
		notes = append(notes, n)
	}
	if len(notes) > 0 {
		step["notes"] = notes
	}
	switch {
	case t.Panic != "":
		step["error"] = object{"text": t.Panic, "trace": "Traceback"}
	case t.Done:
		step["end"] = t.Outcome
	case len(t.Forks) > 0:
		for _, f := range t.Forks {
			l.strands[f.Path] = f
		}
		step["fork"] = len(t.Forks)
	default:
		var calls []object
		for _, c := range t.Calls {
			made := object{"seat": c.Seat, "label": c.Label}
			switch n := l.said[path+c.Seat]; {
			case c.Act != nil:
				made["act"] = c.Act
			case c.Label == "talk":
				made["talk"], made["keep"], made["messages"] = talkNumber(path+c.Seat), n, c.Ask.Messages[n:]
				l.said[path+c.Seat] = len(c.Ask.Messages)
			default:
				made["messages"], made["schema"] = c.Ask.Messages, c.Ask.Schema
			}
			calls = append(calls, made)
		}
		step["ask"] = calls
	}
	return step
}

// talkNumber returns a number for a talk. Different names have different ones in these tests.
func talkNumber(name string) int {
	n := 7
	for _, r := range name {
		n = n*131 + int(r)
	}
	return n
}

// game is a kind that uses everything of a table.
type game struct{}

type gameParams struct {
	Rounds int    `json:"rounds" doc:"How many."`
	Mood   string `json:"mood" oneof:"calm,bold"`
}

func (game) About() world.About { return world.About{Name: "game.py:Game", Version: 1, Doc: "Test."} }

func (game) Defaults() *gameParams { return &gameParams{Rounds: 3, Mood: "calm"} }

func (game) Seats(*gameParams) ([]string, error) { return []string{"a", "b"}, nil }

func (game) Measures(*gameParams) []world.Measure {
	return []world.Measure{{Name: "sum", Bounds: world.Bounds{Low: 0, High: 1e9}}}
}

func (game) World(p *gameParams, _ world.Lineup) (world.World, error) {
	return world.Func(func(t *world.Table) world.Outcome {
		sum, done := 0.0, 0
		var said []llm.Message
		for round := range p.Rounds {
			t.Phase(fmt.Sprint("round ", round+1))
			said = append(said, llm.User(fmt.Sprintf("%s, round %d, card %d", p.Mood, round, t.Rand().IntN(100))))
			reply := t.One(world.Call{Seat: "a", Label: "talk", Ask: llm.Request{Messages: said}})
			said = append(said, llm.Assistant(reply.Text))
			parts := make([]float64, 1+t.Rand().IntN(3))
			t.Fork(len(parts), func(i int, t *world.Table) {
				card := t.Rand().IntN(1000)
				replies := t.Ask(ask("a", i, card), ask("b", i, card))
				t.Note("card", "b", card)
				parts[i] = number(replies[0]) + number(replies[1])
			})
			for _, v := range parts {
				sum += v
			}
			body, _ := json.Marshal([]int{round})
			if got := t.One(world.Call{Seat: []string{"", "b"}[round%2], Label: "act", Act: &world.Act{Name: "echo", Body: body, Do: nil}}); string(got.JSON) == string(body) {
				done++
			}
		}
		return world.Outcome{Scores: []world.Score{{Name: "sum", Value: sum}}, Data: map[string]any{"acts": done, "html": "<b>&"}}
	}), nil
}

func ask(seat string, i, card int) world.Call {
	return world.Call{Seat: seat, Label: "ask", Ask: llm.Request{Messages: []llm.Message{llm.User(fmt.Sprintf("%s %d %d", seat, i, card))}}}
}

func number(r world.Reply) float64 {
	n, _ := strconv.Atoi(r.Text)
	return float64(n)
}

// open opens a pool of workers that s starts.
func open(t *testing.T, s *served, limit int) (*worker.Pool, world.Kind) {
	t.Helper()
	p, k, err := worker.Open(worker.Config{Name: "game.py:Game", Class: "Game", Start: s.start, Max: limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p, k
}

// sometimes returns a number of requests after which a worker ends.
func sometimes(seed uint64, limit int) func() int {
	r := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return limit/2 + r.IntN(limit)
	}
}
