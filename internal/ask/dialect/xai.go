package dialect

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"sync"

	"parley/internal/ask/batch"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/batches"
	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// stableLooks is how often the counts of a cancelled batch must be the same before they are believed:
// requests in flight may still be answered, and then count as such again.
const stableLooks = 4

// xaiForm is xAI's. Its batches have counts instead of a state, and their results come in pages.
func xaiForm() form {
	cancelled := looks{seen: map[string]look{}}
	return form{
		files: "/files", fields: "purpose=batch", batches: "/batches", first: "?limit=100", cancel: ":cancel",
		creation: func(d *batch.Draft, file, _ string) any {
			return batches.XAICreation{Name: nameOf(d.Key), InputFileID: file}
		},
		read: func(body []byte) (snapshot, error) {
			var b batches.XAIBatch
			err := json.Unmarshal(body, &b)
			out := xaiBatch(&b)
			if b.CancelTime != nil && b.State.Cancelled > 0 && out.state.Phase == batch.Ended && cancelled.add(b.ID, b.State) < stableLooks {
				out.state.Phase = batch.Running
			}
			return out, err
		},
		page: func(body []byte, _ int) (all []snapshot, next string, err error) {
			var page batches.XAIList
			err = json.Unmarshal(body, &page)
			for i := range page.Batches {
				all = append(all, xaiBatch(&page.Batches[i]))
			}
			if page.Next != "" {
				next = "?limit=100&pagination_token=" + url.QueryEscape(page.Next)
			}
			return all, next, err
		},
		results: xaiResults,
	}
}

// looks counts how often batches were seen with the same counts.
type looks struct {
	mu   sync.Mutex
	seen map[string]look
}

type look struct {
	state batches.XAIState
	n     int
}

func (l *looks) add(id string, s batches.XAIState) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.seen[id]
	if at.state != s {
		at = look{state: s}
	}
	at.n++
	l.seen[id] = at
	return at.n
}

func xaiBatch(b *batches.XAIBatch) snapshot {
	n := b.State
	out := snapshot{
		id: b.ID, file: b.InputFileID, key: keyIn(b.Name), refusal: b.Error,
		state: batch.State{Phase: batch.Running, Total: n.Requests, Answered: n.Success, Failed: n.Error + n.Cancelled},
	}
	switch {
	case b.CancelledBy != nil && n.Success+n.Error == 0: // the file is wrong
		f := why("failed", *b.CancelledBy)
		f.Line = lineIn(f.Message)
		out.state.Phase, out.state.Faults = batch.Failed, []batch.Fault{f}
	case n.Pending > 0, n.Requests == 0 && b.CancelTime == nil:
	default:
		out.state.Phase = batch.Ended
		if b.CancelTime != nil {
			out.rest = batch.CancelledError()
		}
	}
	return out
}

// xaiResults reads the results page by page.
func xaiResults(ctx context.Context, d *fileAPI, id string) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		b, err := d.show(ctx, id)
		if err != nil {
			yield(batch.Result{}, err)
			return
		}
		at := d.batches + "/" + url.PathEscape(id) + "/results?limit=250"
		for next := at; next != ""; {
			var page batches.XAIResults
			if _, err := d.ask(ctx, transport.Request{Method: http.MethodGet, Path: next}, &page); err != nil {
				yield(batch.Result{}, err)
				return
			}
			for i := range page.Results {
				if !yield(d.xaiResult(&page.Results[i]), nil) {
					return
				}
			}
			last := next
			if next = ""; page.Next != "" {
				next = at + "&pagination_token=" + url.QueryEscape(page.Next)
			}
			if next != "" && (next == last || len(page.Results) == 0) {
				yield(batch.Result{}, d.c.Fail(fault.Malformed("the pages of results do not end", nil), "", nil))
				return
			}
		}
		if b.rest != nil {
			yield(batch.Result{Rest: true, Err: d.finish(b.rest, "")}, nil)
		}
	}
}

func (d *fileAPI) xaiResult(r *batches.XAIResult) batch.Result {
	failed := func(e *llm.Error) batch.Result { return batch.Result{CustomID: r.ID, Err: d.finish(e, "")} }
	switch says := r.Result.Error; {
	case r.Result.Response != nil:
		return d.answered(r.ID, r.Result.Response.Chat, "")
	case says == batches.XAICancelled:
		return failed(batch.CancelledError())
	case says != "":
		return failed(&llm.Error{Kind: llm.KindServer, Message: "the batch could not answer this request: " + fault.Clean(string(says), fault.MaxMessage)})
	}
	return failed(fault.Malformed("the batch has neither an answer nor an error for this request", nil))
}
