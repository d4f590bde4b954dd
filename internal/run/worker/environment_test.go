package worker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/run/worker"
	"parley/world"
)

// adder is a worker with an environment that adds up actions. It ends after a number of requests.
type adder struct {
	durable string
	dies    func() int
	shifts  bool // a worker after the first adds something else
	started atomic.Int32
}

func (a *adder) start() (worker.Started, error) {
	ours, theirs := net.Pipe()
	go a.serve(theirs, int(a.started.Add(1)))
	return worker.Started{Conn: ours}, nil
}

func (a *adder) serve(conn net.Conn, number int) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, `"role":"environment"`) {
		return
	}
	say(conn, object{"parley": 1, "language": "go", "doc": "Test.", "durable": a.durable, "stand_in": true})
	left := 1 << 30
	if a.dies != nil {
		left = a.dies()
	}
	sums := map[string]float64{}
	for {
		line, err := in.ReadBytes('\n')
		if left--; err != nil || left < 0 {
			return
		}
		var r struct {
			ID          int
			Op, Episode string
			Args        map[string]float64
		}
		if json.Unmarshal(line, &r) != nil {
			return
		}
		switch r.Op {
		case "leave":
			delete(sums, r.Episode)
			continue
		case "answer":
			fmt.Fprintf(conn, "{\"id\":%d,\"text\":\"north\"}\n", r.ID)
			continue
		case "reset":
			sums[r.Episode] = r.Args["seed"]
		case "step":
			if r.Args["action"] < 0 {
				fmt.Fprintf(conn, "{\"id\":%d,\"error\":{\"text\":\"add.py:3: ValueError: below 0\"}}\n", r.ID)
				continue
			}
			sums[r.Episode] += r.Args["action"]
			if a.shifts && number > 1 {
				sums[r.Episode]++
			}
		}
		fmt.Fprintf(conn, "{\"id\":%d,\"result\":%v}\n", r.ID, sums[r.Episode])
	}
}

// openAdder opens an environment.
func openAdder(t *testing.T, a *adder) *worker.Sessions {
	t.Helper()
	s, err := worker.OpenEnvironment(worker.Config{Name: "add.py:Add", Class: "Add", Start: a.start, Max: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// add plays a session of an adder and returns its last sum.
func add(ctx context.Context, s *worker.Sessions, name string, actions int) (string, error) {
	last, err := s.Do(ctx, name, "reset", map[string]any{"seed": 7})
	for i := 0; i < actions && err == nil; i++ {
		last, err = s.Do(ctx, name, "step", map[string]any{"action": i})
	}
	s.End(name)
	return string(last), err
}

// TestSessions: a session does not notice that its worker ended, if another one can take its place.
func TestSessions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		a    *adder
		want string
	}{
		{"whole", &adder{durable: "turn"}, ""},
		{"workers that end", &adder{durable: "turn", dies: sometimes(2, 40)}, ""},
		{"must not be repeated", &adder{durable: "episode", dies: sometimes(2, 40)}, "its worker ended"},
		{"not the same again", &adder{durable: "turn", dies: sometimes(2, 40), shifts: true}, "did something else"},
		{"ends always", &adder{durable: "turn", dies: func() int { return 3 }}, "its worker ended 3 times"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := openAdder(t, c.a)
			var failed error
			for i := range 20 {
				switch got, err := add(t.Context(), s, fmt.Sprint(i), 10); {
				case err != nil:
					failed = err
				case got != "52" && !c.a.shifts:
					t.Errorf("session %d: %s, want 52", i, got)
				}
			}
			if c.want == "" && failed != nil || c.want != "" && (failed == nil || !strings.Contains(failed.Error(), c.want)) {
				t.Errorf("error %v, want %q", failed, c.want)
			}
			if c.a.dies != nil && c.a.started.Load() < 3 {
				t.Errorf("%d workers were started", c.a.started.Load())
			}
		})
	}
}

// TestSessionFaults: an error of the code names its line, and the session goes on; a canceled operation ends at once.
func TestSessionFaults(t *testing.T) {
	t.Parallel()
	s := openAdder(t, &adder{durable: "turn"})
	_, err := s.Do(t.Context(), "a", "step", map[string]any{"action": -1})
	if fault, ok := errors.AsType[*world.CodeError](err); !ok || fault.Text != "add.py:3: ValueError: below 0" {
		t.Errorf("error %v", err)
	}
	if got, err := s.Do(t.Context(), "", "check", map[string]any{"seed": 1}); string(got) != "0" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if text, ok := s.StandIn("small", nil, 1); !ok || text != "north" {
		t.Errorf("%q, %v", text, ok)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := s.Do(ctx, "b", "step", map[string]any{"action": 1}); !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
}
