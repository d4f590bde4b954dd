// Part failure counts failed calls and failed episodes of a run, and says what to do about
// them.

package results

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"parley/internal/ask/dispatch"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Failure is the failed calls of a model with one kind of error. A refusal counts as a failure,
// even if it is an answer.
type Failure struct {
	Model   string   `json:"model"` // as requested; empty for acts
	Kind    llm.Kind `json:"kind"`
	Calls   int      `json:"calls"`
	Status  int      `json:"status,omitempty"`
	Example string   `json:"example"` // the message of the first; hostile
	Remedy  string   `json:"remedy"`  // what to do about it
}

// failureCounts counts failed calls by model and kind.
type failureCounts map[countKey]*Failure

type countKey struct {
	model string
	kind  llm.Kind
}

// Add counts a reply, if it is a failure.
func (fs failureCounts) Add(e *journal.Replied) {
	err := e.Error
	switch {
	case err != nil:
	case e.Response != nil && e.Response.Finish == llm.FinishRefused:
		err = &llm.Error{Kind: llm.KindRefused, Message: cmp.Or(e.Response.Refusal, e.Response.Text, "the model refused")}
	default:
		return
	}
	k := countKey{kind: err.Kind}
	if e.Act == nil && e.Request != nil {
		k.model = world.ModelName(e.Request.Model)
	}
	f := fs[k]
	if f == nil {
		f = newFailure(k.model, err)
		fs[k] = f
	}
	f.Calls++
}

func newFailure(model string, err *llm.Error) *Failure {
	f := &Failure{Model: model, Kind: err.Kind, Status: err.Status, Example: FailureText(err, model == "")}
	f.Remedy = Remedy(model, f.Kind, f.Status, f.Example)
	return f
}

// FailureText returns the message of a failure as one line; it is hostile. That of an act also names the server, since a plan may have many.
func FailureText(err *llm.Error, act bool) string {
	if !act || err.Provider == "" || strings.Contains(err.Message, err.Provider) {
		return oneLine(err.Message)
	}
	return oneLine(err.Provider + ": " + err.Message)
}

// Of describes one failed call. It returns nil if the call did not fail.
func Of(e *journal.Replied) *Failure {
	fs := failureCounts{}
	fs.Add(e)
	for _, f := range fs {
		return f
	}
	return nil
}

// OfAttempts describes failed attempts of calls to a model. said is the message of one of them.
func OfAttempts(model string, kind llm.Kind, attempts int, said string) *Failure {
	f := newFailure(model, &llm.Error{Kind: kind, Message: said})
	f.Calls = attempts
	return f
}

// Sorted lists the failures, the most common first.
func (fs failureCounts) Sorted() []Failure {
	out := make([]Failure, 0, len(fs))
	for _, f := range fs {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// failedReader is a journal that can read only the failed replies: see runfile.Store.Failed.
type failedReader interface {
	Failed(ctx context.Context, each func(journal.Entry) error) error
}

// List counts the failed calls of a run by model and kind, the most common first.
func List(ctx context.Context, j journal.Journal) ([]Failure, error) {
	fs := failureCounts{}
	add := func(e journal.Entry) error {
		if r, ok := e.(*journal.Replied); ok {
			fs.Add(r)
		}
		return nil
	}
	var err error
	if f, ok := j.(failedReader); ok {
		err = f.Failed(ctx, add)
	} else {
		err = j.Read(ctx, journal.Whole(), add)
	}
	return fs.Sorted(), err
}

// String returns the number of calls, the kind and the model: "45 cut off (lab/tiny)".
func (f Failure) String() string {
	outside := "the environment"
	if f.Kind == llm.KindRaised {
		outside = "code outside of the world"
	}
	return fmt.Sprintf("%d %s (%s)", f.Calls, strings.ReplaceAll(string(f.Kind), "_", " "), cmp.Or(f.Model, outside))
}

// contextSize matches the size of the context in a server's message about a prompt that is too long.
var contextSize = regexp.MustCompile(`(?i)context[^0-9]{0,40}?([0-9][0-9,]{2,})`)

// namedHost matches the host in a message about a server that cannot be reached.
var namedHost = regexp.MustCompile(`(?:the host |://|lookup |dial tcp )(?:\[([^\]]+)\]|([^\s/:]+))`)

// unreached says what to do about a server that cannot be reached.
func unreached(model, said string) string {
	account, _ := llm.SplitModel(model)
	host := ""
	if m := namedHost.FindStringSubmatch(said); m != nil && !strings.Contains(said, "proxyconnect") { // that host is the proxy
		host = m[1] + m[2]
	}
	return dispatch.Remedy(account, host)
}

// Remedy says what to do about calls to a model that fail. The model is as in Failure. status is the HTTP status, and
// said is the server's message.
func Remedy(model string, kind llm.Kind, status int, said string) string {
	switch {
	case model == "" || kind == llm.KindRaised:
		return actRemedy(kind)
	case model == world.ModelName(world.Human) && kind != llm.KindCanceled:
		return personRemedy(kind)
	case kind == llm.KindAuth && strings.Contains(strings.ToLower(strings.ReplaceAll(said, " ", "")), "cachedcontent"):
		return "cached_content of the agent is not stored at Google, or not any more: store it, with a ttl that outlives the run, and play a new run with its name"
	case status == http.StatusNotFound && strings.Contains(strings.ToLower(said), "model"):
		return "check the name of the model: the server does not have it"
	case status == http.StatusNotFound:
		return "check base_url of the provider: it is everything before /chat/completions, /responses or /messages, and should end in /v1 for most servers"
	}
	switch kind {
	case llm.KindRateLimited:
		return "lower the limits of the provider (limits.rpm, limits.tpm) or --concurrency"
	case llm.KindOverloaded:
		return "the provider is short of capacity: try again later, or lower --concurrency"
	case llm.KindTimeout:
		return "raise the timeout of the provider; if the server is your own, lower --concurrency"
	case llm.KindTransport:
		return unreached(model, said)
	case llm.KindServer:
		return "the server failed: look at its log"
	case llm.KindMalformed:
		return "check base_url and dialect of the provider: what answers there does not speak its format"
	case llm.KindInvalid:
		return "the model does not follow the JSON Schema it is asked for: use another model, or a server that enforces schemas"
	case llm.KindCutOff:
		return "raise max_tokens of the agent; where the model thinks before it answers, lower its effort"
	case llm.KindRefused:
		return "the model does not want to answer: use another model, or other words"
	case llm.KindTooLong:
		if m := contextSize.FindStringSubmatch(said); m != nil {
			return fmt.Sprintf("the model's context is %s tokens: use a model or a server setting with a larger one, lower max_tokens, or make prompts shorter", m[1])
		}
		return "the prompt does not fit the model's context: use a model or a server setting with a larger one, lower max_tokens, or make prompts shorter"
	case llm.KindBadRequest:
		return "the provider does not accept the request: check the name of the model and the parameters of the agent"
	case llm.KindAuth:
		return "check the key (key_env of the provider, or the client's own at a gateway), and that it may use the model"
	case llm.KindQuota:
		return "the account at the provider is out of credit: add some, and resume"
	case llm.KindBudget:
		return "raise the budget, and resume"
	case llm.KindCanceled:
		return "the run was stopped while the call was in flight: resume"
	}
	return ""
}

// personRemedy does the same for a person.
func personRemedy(kind llm.Kind) string {
	if kind == llm.KindTimeout {
		return "give people more time in the next run: raise deadline of their agents; or name a fallback there, an agent whose model answers after the deadline"
	}
	return "this run could not ask people: the message says why; docs/how-to/play-a-seat.md says what they need"
}

// actRemedy does the same for an environment.
func actRemedy(kind llm.Kind) string {
	switch kind {
	case llm.KindBadRequest:
		return "the environment does not accept what it is sent: check the params that describe it"
	case llm.KindTimeout:
		return "give the environment more time in the params, or start more of its servers"
	case llm.KindTransport, llm.KindServer, llm.KindOverloaded, llm.KindMalformed:
		return "make sure that the environment server is running, and that the params name its address; its log says more"
	case llm.KindInvalid:
		return "the server at this address does not answer in the form of the protocol: correct its answers, or the address and the protocol in the params"
	case llm.KindAuth:
		return "check the key of the environment server"
	case llm.KindRaised:
		return "a function that the world runs outside, as t.do does, raised an error: correct it, or let the world catch parley.Failed"
	}
	return "the log of the environment server says more"
}
