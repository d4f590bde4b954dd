package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds/rollout"
	"parley/worlds/rollout/rules"
)

// lab is a run of rollouts that a test controls: it decides when and how episodes end.
type lab struct {
	file     string
	episodes int           // in groups of two
	ends     chan int      // episodes to end; minus one and less: to fail the one of -n-1
	done     chan struct{} // an end is durable and was reported

	until  atomic.Int64 // as Until said
	past   atomic.Pointer[[]int]
	paused atomic.Bool
	// pausedFirst means that the run was paused when it began.
	pausedFirst atomic.Bool
	busy        atomic.Bool // calls are in flight that never end
	// changed describes the last change of the plan.
	changed atomic.Pointer[string]
}

func (l *lab) Past(versions []int) { l.past.Store(&versions) }
func (l *lab) Until(n int)         { l.until.Store(int64(n)) }
func (l *lab) Change(_, detail string, _ json.RawMessage) error {
	if detail == "tasks: 1 removed" {
		return errors.New("there is no task")
	}
	l.changed.Store(&detail)
	return nil
}
func (l *lab) Pause(ctx context.Context, _ string, calls InFlight) error {
	l.paused.Store(true)
	if calls == CutCalls {
		l.busy.Store(false)
	}
	if calls != HoldCalls && l.busy.Load() {
		<-ctx.Done()
		return fmt.Errorf("a call is still in flight: %w", context.Cause(ctx))
	}
	return nil
}

func (l *lab) Resume(string) error { l.paused.Store(false); return nil }

func newLab(t *testing.T, episodes int) *lab {
	t.Helper()
	return &lab{file: filepath.Join(t.TempDir(), "run.parley"), episodes: episodes, ends: make(chan int), done: make(chan struct{})}
}

// config is how the lab is served.
func (l *lab) config() Config {
	return Config{
		Kind: rollout.Kind(), Memory: l.file + "-trainer",
		Plan: func(o Override) (Prepared, error) {
			if g := o.Params["group"]; g != nil && string(g) != "2" {
				return Prepared{}, fmt.Errorf("params.group: %s: want 2", g)
			}
			return Prepared{What: fmt.Sprint(o.Episodes != nil), Play: l.play}, nil
		},
		Open: func() (*runfile.Store, error) { return runfile.OpenRead(l.file) },
	}
}

// play ends episodes on request, until all have ended.
func (l *lab) play(ctx, drain context.Context, begun func(Control), ended func()) (Ending, error) {
	store, err := runfile.Open(ctx, l.file, runfile.Either)
	if err != nil {
		return Ending{}, err
	}
	defer store.Close()
	left, err := l.open(ctx, store)
	if err != nil {
		return Ending{}, err
	}
	begun(l)
	l.pausedFirst.Store(l.paused.Load())
	for ; left > 0; left-- {
		select {
		case n := <-l.ends:
			if err := store.Append(ctx, entries(n)...); err != nil {
				return Ending{}, err
			}
			ended()
			l.done <- struct{}{}
		case <-drain.Done():
			return Ending{State: string(journal.Stopped), Reason: context.Cause(drain).Error()}, nil
		case <-ctx.Done():
			return Ending{State: string(journal.Stopped)}, context.Cause(ctx)
		}
	}
	return Ending{State: string(journal.Complete)}, store.Append(ctx, &journal.Closed{State: journal.Complete})
}

// open begins or resumes the run, and returns how many episodes are left.
func (l *lab) open(ctx context.Context, store *runfile.Store) (int, error) {
	head, err := store.Head(ctx)
	if err != nil {
		return 0, err
	}
	if head.Begun == nil {
		var specs []world.Spec
		for i := range l.episodes {
			specs = append(specs, world.Spec{Kind: "rollout", Params: json.RawMessage(`{"env":"maze"}`), Deal: i / 2})
		}
		if err := store.Append(ctx, &journal.Begun{Version: journal.Version, Run: "r1", Kind: "rollout"}, &journal.Staged{Specs: world.List(specs...)}); err != nil {
			return 0, err
		}
	}
	return l.episodes - head.Ended.Len(), store.Append(ctx, &journal.Opened{})
}

// entries are the one answer and the end of an episode.
func entries(n int) []journal.Entry {
	failed := ""
	if n < 0 {
		n, failed = -n-1, "lost"
	}
	good := failed == ""
	d, err := json.Marshal(rules.Data{Env: "maze", Stop: rules.StopTerminated, Rows: []rules.Row{{
		Step: 1, Seat: "agent", Weights: "7", StepReward: float64(n % 2), Reward: float64(n % 2), Terminal: good, Completed: good, Trainable: good,
	}}})
	if err != nil {
		panic(err) // of a test's own data
	}
	o := world.Outcome{Data: json.RawMessage(d), Failed: failed}
	if good {
		o.Scores = []world.Score{{Seat: "agent", Name: "reward", Value: float64(n % 2)}}
	}
	at := journal.Turn{Episode: n}
	return []journal.Entry{
		&journal.Turned{Turn: at, Calls: 1},
		&journal.Replied{
			Turn: at, Seat: "agent", Agent: "x", At: time.Unix(1, 0),
			Request:  &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User(fmt.Sprintf("episode %d?", n))}},
			Response: &llm.Response{Text: fmt.Sprintf("<answer %d>", n), Finish: llm.FinishStop, WeightVersion: "7", PromptTokenIDs: []int{1, 2}, TokenIDs: []int{3}},
		},
		&journal.Ended{Episode: n, Outcome: o},
	}
}

// end ends episodes, one after the other.
func (l *lab) end(episodes ...int) {
	for _, n := range episodes {
		l.ends <- n
		<-l.done
	}
}

// served is a lab that is served.
type served struct {
	*lab
	server   *Server
	t        *testing.T
	url, key string
	drain    context.CancelCauseFunc
	stop     func() error // waits for the end
}

// serve serves l until the test ends.
func (l *lab) serve(t *testing.T, change func(*Config)) *served {
	t.Helper()
	c := l.config()
	if change != nil {
		change(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	drain, cancel := context.WithCancelCause(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { err = s.Run(context.Background(), drain, ln) })
	out := &served{lab: l, server: s, t: t, url: "http://" + ln.Addr().String(), drain: cancel}
	out.stop = sync.OnceValue(func() error {
		cancel(fmt.Errorf("the test is over"))
		wg.Wait()
		http.DefaultClient.CloseIdleConnections()
		return err
	})
	t.Cleanup(func() {
		if err := out.stop(); err != nil {
			t.Error(err)
		}
	})
	return out
}

// ask sends a request and returns the answer.
func (s *served) ask(method, path, body string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(b))
}

// want fails the test unless the answer has the code and holds the text.
func (s *served) want(method, path, body string, code int, text string) string {
	s.t.Helper()
	got, answer := s.ask(method, path, body)
	if got != code || !strings.Contains(answer, text) {
		s.t.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, got, answer, code, text)
	}
	return answer
}

// page is an answer of /v1/groups.
type page struct {
	Groups []struct {
		groupHead
		Rows []json.RawMessage
	}
	tail
}

// poll asks for groups.
func (s *served) poll(query string) (p page) {
	s.t.Helper()
	code, body := s.ask("GET", "/v1/groups?"+query, "")
	if err := json.Unmarshal([]byte(body), &p); err != nil || code != http.StatusOK {
		s.t.Fatalf("%d: %v: %s", code, err, body)
	}
	return p
}

// ids names the groups of a page.
func (p page) ids() string {
	var all []string
	for _, g := range p.Groups {
		all = append(all, fmt.Sprintf("%s/%d", g.GroupID, len(g.Rows)))
	}
	return strings.Join(all, " ")
}
