package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/llm"
)

// script is a model that fails as scripted, one error a call, and then answers.
type script struct {
	errs  []*llm.Error
	calls int
	at    []time.Time
	names []string
}

func (s *script) Ask(_ context.Context, req *llm.Request) (*llm.Response, error) {
	s.at = append(s.at, time.Now())
	s.names = append(s.names, req.Model)
	s.calls++
	if s.calls <= len(s.errs) {
		return nil, s.errs[s.calls-1]
	}
	return &llm.Response{Text: "yes", Finish: llm.FinishStop, Usage: llm.Usage{Input: 1, Output: 1}}, nil
}

func times(n int, e llm.Error) []*llm.Error {
	out := make([]*llm.Error, n)
	for i := range out {
		c := e
		out[i] = &c
	}
	return out
}

func TestRetryByKind(t *testing.T) {
	t.Parallel()
	for _, kind := range llm.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{errs: times(3, llm.Error{Kind: kind})}
				d := dispatcher(t, s, provider.Provider{})
				resp, err := d.Ask(t.Context(), asked(1, 10, 1)[0])
				if kind.Retryable() {
					if err != nil || resp.Metadata.Attempts != 4 {
						t.Fatalf("after three failures that pass: %v, %+v", err, resp)
					}
					return
				}
				if llm.KindOf(err) != kind || s.calls != 1 {
					t.Fatalf("asked %d times, got %v", s.calls, err)
				}
			})
		})
	}
}

func TestRetryGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{errs: times(99, llm.Error{Kind: llm.KindServer, Status: 500, Message: "sorry"})}
		d := dispatcher(t, s, provider.Provider{}, func(c *Config) { c.Settings.Retry.Retries = 2 })
		_, err := d.Ask(t.Context(), asked(1, 10, 1)[0])
		if s.calls != 3 || llm.KindOf(err) != llm.KindServer || llm.AsError(err).Metadata.Attempts != 3 {
			t.Errorf("%d calls, %v", s.calls, err)
		}
	})
}

func TestRetryWaitsOutRefusalsUntilTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{errs: times(20, llm.Error{Kind: llm.KindRateLimited, RetryAfter: 10 * time.Second})}
		d := dispatcher(t, s, provider.Provider{})
		if _, err := d.Ask(t.Context(), asked(1, 10, 1)[0]); err != nil {
			t.Fatalf("twenty refusals are no failure: %v", err)
		}
		for i := 1; i < len(s.at); i++ {
			if gap := s.at[i].Sub(s.at[i-1]); gap < 10*time.Second {
				t.Errorf("came back after %v, asked for 10s", gap)
			}
		}
		s2 := &script{errs: times(1000, llm.Error{Kind: llm.KindOverloaded, Message: "busy"})}
		d = dispatcher(t, s2, provider.Provider{}, func(c *Config) { c.Settings.Retry.Deadline = 5 * time.Minute })
		start := time.Now()
		_, err := d.Ask(t.Context(), asked(1, 10, 1)[0])
		if took := time.Since(start); took > 5*time.Minute {
			t.Errorf("a deadline of 5m took %v", took)
		}
		if llm.KindOf(err) != llm.KindTimeout || !strings.Contains(err.Error(), "deadline of 5m0s") || !strings.Contains(err.Error(), "busy") {
			t.Errorf("got %v", err)
		}
	})
}

// TestRetryCallersOwnRefusals: a refusal that is about one caller's account makes only that call
// wait, as long as the server asks.
func TestRetryCallersOwnRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Time
		m := llm.Func(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
			refused := &llm.Error{Status: 401, Caller: true}
			switch req.Sample {
			case 0:
				if tries = append(tries, time.Now()); len(tries) < 8 {
					refused.Kind, refused.RetryAfter = llm.KindRateLimited, time.Hour
					return nil, refused
				}
			case 1:
				refused.Kind = llm.KindAuth
				return nil, refused
			case 2:
				refused.Kind = llm.KindQuota
				return nil, refused
			}
			return &llm.Response{Text: "yes", Finish: llm.FinishStop}, nil
		})
		d := dispatcher(t, m, provider.Provider{}, func(c *Config) { c.Settings.Retry.Deadline = 24 * time.Hour })
		began := time.Now()
		results := d.All(t.Context(), asked(3, 10, 1)[1:]) // they fail, and stop nobody
		done := make(chan error, 1)
		go func() {
			_, err := d.Ask(t.Context(), asked(1, 10, 1)[0])
			done <- err
		}()
		synctest.Wait()
		_, err := d.Ask(t.Context(), asked(4, 10, 1)[3])
		if took := time.Since(began); err != nil || took > 0 || llm.KindOf(results[0].Err) != llm.KindAuth || llm.KindOf(results[1].Err) != llm.KindQuota {
			t.Errorf("another caller: %v after %v; before: %v", err, took, results)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		for i := 1; i < len(tries); i++ {
			if gap := tries[i].Sub(tries[i-1]); gap < time.Hour {
				t.Errorf("came back after %v, asked for 1h", gap)
			}
		}
	})
}

func TestRetryHoldsNoPermitWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failed := false
		m := llm.Func(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
			if req.Sample == 0 && !failed {
				failed = true
				return nil, &llm.Error{Kind: llm.KindServer, RetryAfter: time.Hour}
			}
			return &llm.Response{}, nil
		})
		d := dispatcher(t, m, provider.Provider{Limits: provider.Limits{Concurrency: 1}}, func(c *Config) { c.Settings.Retry.Deadline = 2 * time.Hour })
		start := time.Now()
		var second time.Duration
		d.Each(t.Context(), func(yield func(*llm.Request) bool) {
			for _, r := range asked(2, 10, 1) {
				yield(r)
			}
		}, func(i int, r llm.Result) {
			if i == 1 {
				second = time.Since(start)
			}
		})
		if second != 0 {
			t.Errorf("the second call waited %v for the pause of the first", second)
		}
	})
}

func TestFallbacks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind  llm.Kind
		names string // models asked, in order
	}{
		{llm.KindServer, "lab/any lab/any lab/b"},
		{llm.KindRateLimited, "lab/any lab/any lab/b"},
		{llm.KindQuota, "lab/any"}, // the account is stopped, and lab/b is on it too
		{llm.KindRefused, "lab/any lab/b"},
		{llm.KindTooLong, "lab/any lab/b"},
		{llm.KindCanceled, "lab/any"},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := 1
				if tt.kind.Retryable() {
					n = 2
				}
				s := &script{errs: times(n, llm.Error{Kind: tt.kind})}
				d := dispatcher(t, s, provider.Provider{}, func(c *Config) { c.Settings.Retry.Retries = 1 })
				req := asked(1, 10, 1)[0]
				req.Fallbacks = []string{"lab/b"}
				_, _ = d.Ask(t.Context(), req)
				if got := strings.Join(s.names, " "); got != tt.names {
					t.Errorf("asked %q, want %q", got, tt.names)
				}
			})
		})
	}
}

func TestFinalIsFinal(t *testing.T) {
	t.Parallel()
	s := &script{errs: times(1, llm.Error{Kind: llm.KindServer, Final: true})}
	d := dispatcher(t, s, provider.Provider{})
	if _, err := d.Ask(t.Context(), asked(1, 10, 1)[0]); err == nil || s.calls != 1 {
		t.Errorf("the server said not to try again; asked %d times", s.calls)
	}
}

func TestUnknownProvider(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, answersAfter(0), provider.Provider{})
	for model, want := range map[string]string{
		"lba/any": `no provider "lba"; providers here: lab`,
		"any":     "a model is written provider/model; providers here: lab",
	} {
		_, err := d.Ask(t.Context(), &llm.Request{Model: model})
		if llm.KindOf(err) != llm.KindBadRequest || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: got %v", model, err)
		}
	}
}

// piece is an answer, or a part of one, of tokens with the given ids.
func piece(finish llm.Finish, version string, ids ...int) *llm.Response {
	r := &llm.Response{Finish: finish, WeightVersion: version, TokenIDs: ids, Usage: llm.Usage{Input: 3, Output: len(ids)}}
	for _, id := range ids {
		r.Text += fmt.Sprint(id, " ")
		r.Logprobs = append(r.Logprobs, llm.Logprob{ID: id, Logprob: -float64(id)})
	}
	return r
}

// cutting is a server that answers with one piece after the other, and remembers where each began.
type cutting struct {
	pieces []*llm.Response
	errs   []error
	began  []int // tokens that the request brought
	asked  func()
}

func (s *cutting) Ask(_ context.Context, req *llm.Request) (*llm.Response, error) {
	n := len(s.began)
	at := 0
	if req.Begun != nil {
		at = len(req.Begun.TokenIDs)
	}
	s.began = append(s.began, at)
	if s.asked != nil {
		s.asked()
	}
	if n < len(s.errs) && s.errs[n] != nil {
		return nil, s.errs[n]
	}
	r := *s.pieces[min(n, len(s.pieces)-1)]
	if req.Begun == nil {
		r.PromptTokenIDs = []int{1, 2, 3}
	}
	return &r, nil
}

// continuing is a request whose answer can be continued.
func continuing() *llm.Request {
	req := asked(1, 10, 8)[0]
	req.TokenIDs, req.Logprobs = true, true
	return req
}

var serverWithIDs = provider.Provider{Dialect: "openai", Capabilities: []provider.Capability{{Match: "*", TokenIDs: true}}}

// TestContinued: an answer that was cut off is continued from its last token, and says which weights wrote which part.
func TestContinued(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*llm.Request)
		server cutting
		want   string // tokens, spans, where attempts began, the reason to stop
	}{
		{"twice", nil, cutting{pieces: []*llm.Response{piece(llm.FinishAborted, "1", 11, 12), piece(llm.FinishAborted, "2", 13), piece(llm.FinishStop, "3", 14)}},
			"[11 12 13 14] [{2 1} {1 2} {1 3}] [0 2 3] stop"},
		{"before the first token", nil, cutting{pieces: []*llm.Response{piece(llm.FinishAborted, "1"), piece(llm.FinishStop, "2", 14)}}, "[14] [] [0 0] stop"},
		{"at the limit", nil, cutting{pieces: []*llm.Response{piece(llm.FinishAborted, "1", 1, 2, 3, 4, 5, 6, 7, 8)}}, "[1 2 3 4 5 6 7 8] [{8 1}] [0] length"},
		{"with a seed", func(r *llm.Request) { r.Seed = new(int64) }, cutting{pieces: []*llm.Response{piece(llm.FinishAborted, "1", 11), piece(llm.FinishStop, "2", 14)}}, "[14] [] [0 0] stop"},
		{"by a server that does not", nil, cutting{
			pieces: []*llm.Response{piece(llm.FinishAborted, "1", 11), nil, piece(llm.FinishStop, "2", 14)}, errs: []error{nil, &llm.Error{Kind: llm.KindBadRequest, Status: 404}},
		}, "[14] [] [0 1 0] stop"},
		{"without ids", nil, cutting{pieces: []*llm.Response{piece(llm.FinishAborted, "1", 11), {Text: "more", Finish: llm.FinishStop}, piece(llm.FinishStop, "2", 14)}}, "[14] [] [0 1 0] stop"},
		{"after an error", nil, cutting{
			pieces: []*llm.Response{piece(llm.FinishAborted, "1", 11), nil, piece(llm.FinishStop, "2", 14)}, errs: []error{nil, &llm.Error{Kind: llm.KindServer, Uncertain: true}},
		}, "[11 14] [{1 1} {1 2}] [0 1 1] stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, req := dispatcher(t, &c.server, serverWithIDs), continuing()
				if c.change != nil {
					c.change(req)
				}
				resp, err := d.Ask(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				got := fmt.Sprint(resp.TokenIDs, " ", resp.Spans, " ", c.server.began, " ", resp.Finish)
				if got != c.want || len(resp.Logprobs) != len(resp.TokenIDs) || len(resp.PromptTokenIDs) != 3 || resp.Usage.Output != len(resp.TokenIDs) {
					t.Errorf("%s, %+v; want %s", got, resp, c.want)
				}
			})
		})
	}
}

// TestContinuedAfterPause: a call that is refused because the run is paused says what it has of its answer, and a request
// with that continues it.
func TestContinuedAfterPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		held := errors.New("paused")
		s := &cutting{pieces: []*llm.Response{piece(llm.FinishAborted, "1", 11), piece(llm.FinishStop, "2", 12)}}
		d, req := dispatcher(t, s, serverWithIDs), continuing()
		s.asked = func() { d.Hold(&llm.Error{Kind: llm.KindCanceled, Err: held}, false) }
		_, err := d.Ask(t.Context(), req)
		e := llm.AsError(err)
		if !errors.Is(err, held) || e.Partial == nil || len(e.Partial.TokenIDs) != 1 {
			t.Fatalf("%v, %+v", err, e.Partial)
		}
		s.asked = nil
		d.Hold(nil, false)
		again := *req
		again.Begun = e.Partial
		resp, err := d.Ask(t.Context(), &again)
		if err != nil || fmt.Sprint(resp.TokenIDs, resp.Spans, resp.Text, resp.WeightVersion) != "[11 12] [{1 1} {1 2}]11 12 1" {
			t.Errorf("%+v, %v", resp, err)
		}
	})
}

// TestDeadline: a deadline behaves like context.WithDeadlineCause, whether or not its end was
// waited for before.
func TestDeadline(t *testing.T) {
	t.Parallel()
	late := errors.New("late")
	type key struct{}
	for _, waited := range []bool{false, true} {
		for _, test := range []struct {
			name  string
			then  func(cancel, stop func())
			err   error
			cause error
		}{
			{"goes on", func(func(), func()) {}, nil, nil},
			{"time passes", func(func(), func()) { time.Sleep(time.Minute) }, context.DeadlineExceeded, late},
			{"the parent ends", func(cancel, _ func()) { cancel() }, context.Canceled, context.Canceled},
			{"the call is over", func(_, stop func()) { stop() }, context.Canceled, context.Canceled},
		} {
			synctest.Test(t, func(t *testing.T) {
				parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
				defer cancel()
				d := withDeadline(parent, time.Now().Add(time.Minute), late)
				defer d.stop()
				if waited {
					d.Done()
				}
				test.then(cancel, d.stop)
				synctest.Wait()
				child, free := context.WithCancel(d)
				defer free()
				for name, ctx := range map[string]context.Context{"itself": d, "a child": child} {
					if err, cause := ctx.Err(), context.Cause(ctx); err != test.err || cause != test.cause {
						t.Errorf("%s, waited %v: %s: %v because of %v, want %v because of %v", test.name, waited, name, err, cause, test.err, test.cause)
					}
					select {
					case <-ctx.Done():
						if test.err == nil {
							t.Errorf("%s, waited %v: %s has ended", test.name, waited, name)
						}
					default:
						if test.err != nil {
							t.Errorf("%s, waited %v: %s has not ended", test.name, waited, name)
						}
					}
					if ctx.Value(key{}) != "kept" {
						t.Errorf("%s, waited %v: %s has lost a value of its parent", test.name, waited, name)
					}
				}
			})
		}
	}
}

// TestDeadlineOfTheParent: the earlier deadline of the parent counts.
func TestDeadlineOfTheParent(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(time.Hour)
	parent, cancel := context.WithDeadline(t.Context(), soon)
	defer cancel()
	for at, want := range map[time.Time]time.Time{soon.Add(-time.Minute): soon.Add(-time.Minute), soon.Add(time.Minute): soon} {
		d := withDeadline(parent, at, nil)
		if got, ok := d.Deadline(); !ok || !got.Equal(want) {
			t.Errorf("deadline %v of %v, want %v", got, at, want)
		}
		d.stop()
	}
}
