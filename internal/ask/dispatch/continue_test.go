package dispatch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"parley/internal/ask/provider"
	"parley/llm"
)

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
