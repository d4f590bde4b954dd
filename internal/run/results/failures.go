package results

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"reflect"
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
	Model   string   `json:"model"` // as requested; empty for acts; of a file or a batch at a gateway, the provider
	Kind    llm.Kind `json:"kind"`
	Calls   int      `json:"calls"`
	Status  int      `json:"status,omitempty"`
	Example string   `json:"example"` // the message of the first; hostile
	Remedy  string   `json:"remedy"`  // what to do about it
	// Episodes are the first that have such a call.
	Episodes []int `json:"episodes,omitempty"`
}

// maxFailureEpisodes is how many episodes a Failure names.
const maxFailureEpisodes = 5

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
	ofClient := ofClient(e)
	if ofClient {
		k.model = cmp.Or(err.Provider, "the provider")
	}
	f := fs[k]
	if f == nil {
		f = newFailure(k.model, err)
		if ofClient && (err.Kind == llm.KindBadRequest || err.Status == http.StatusNotFound) {
			f.Remedy = "the provider does not accept the file or the batch, or does not have it: correct what the client sends"
		}
		fs[k] = f
	}
	f.Calls++
	if n := len(f.Episodes); n < maxFailureEpisodes && !slices.Contains(f.Episodes, e.Episode) {
		f.Episodes = append(f.Episodes, e.Episode)
	}
}

// ofClient reports whether a client of a gateway made a call that no model answers, such as one about a file or a batch. Its label is the
// endpoint, with which its name begins.
func ofClient(e *journal.Replied) bool {
	return e.Act != nil && e.Seat == "client" && e.Label != "" && strings.HasPrefix(e.Act.Name, e.Label)
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

// FailureOf describes one failed call. It returns nil if the call did not fail.
func FailureOf(e *journal.Replied) *Failure {
	fs := failureCounts{}
	fs.Add(e)
	for _, f := range fs {
		return f
	}
	return nil
}

// AttemptsFailure describes failed attempts of calls to a model. message is that of one of them.
func AttemptsFailure(model string, kind llm.Kind, attempts int, message string) *Failure {
	f := newFailure(model, &llm.Error{Kind: kind, Message: message})
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

// Failures counts the failed calls of a run by model and kind, the most common first.
func Failures(ctx context.Context, j journal.Journal) ([]Failure, error) {
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
func unreached(model, message string) string {
	account, _ := llm.SplitModel(model)
	host := ""
	if m := namedHost.FindStringSubmatch(message); m != nil && !strings.Contains(message, "proxyconnect") { // that host is the proxy
		host = m[1] + m[2]
	}
	return dispatch.Remedy(account, host)
}

// Remedy says what to do about calls to a model that fail. The model is as in Failure. status is the HTTP status, and
// message is the server's.
func Remedy(model string, kind llm.Kind, status int, message string) string {
	switch {
	case model == "" || kind == llm.KindRaised:
		return actRemedy(kind)
	case model == world.ModelName(world.Human) && kind != llm.KindCanceled:
		return personRemedy(kind)
	case journal.ByProgram(model) && kind != llm.KindBudget && kind != llm.KindCanceled:
		return programRemedy(kind)
	case kind == llm.KindAuth && strings.Contains(strings.ToLower(strings.ReplaceAll(message, " ", "")), "cachedcontent"):
		return "cached_content of the agent is not stored at Google, or not any more: store it, with a ttl that outlives the run, and play a new run with its name"
	case status == http.StatusNotFound && strings.Contains(strings.ToLower(message), "model"):
		return "check the name of the model: the server does not have it"
	case status == http.StatusNotFound && strings.Contains(message, "/generate"):
		return "use a server with this endpoint: vLLM or SGLang"
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
		return unreached(model, message)
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
		if m := contextSize.FindStringSubmatch(message); m != nil {
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

// programRemedy does the same for a program.
func programRemedy(kind llm.Kind) string {
	switch kind {
	case llm.KindBadRequest:
		return "make the program startable and resume the run; or correct its command in the plan, and run the plan with --failed"
	case llm.KindInvalid, llm.KindMalformed:
		return "the program does not print the answer that the question asks for: see what it prints with parley show"
	}
	return "see what the program printed with parley show; start its command by hand"
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

// Fault is the most common reason why episodes failed. Said and At are of the first episode.
type Fault struct {
	Episodes int    `json:"episodes"`       // that failed for this reason
	Why      string `json:"why"`            // as in their outcomes
	Said     string `json:"said,omitempty"` // the message of the failed call; hostile
	At       string `json:"at,omitempty"`   // where its world panicked, as game.go:57
	// Others is how many other reasons there are.
	Others int `json:"others,omitempty"`
	// Trace is the traceback of code that is not part of the program, such as a world in Python.
	Trace string `json:"trace,omitempty"`
}

// CommonestFault returns the most common reason why episodes of a run failed, and the first one
// where several are equally common. It returns nil if no episode failed. Its texts are one
// line each, and cut.
func CommonestFault(ctx context.Context, j journal.Journal, head *journal.Head) (*Fault, error) {
	if head.Ended.Failed() == 0 {
		return nil, nil
	}
	count := map[string]int{}
	for e := range head.Ended.All() {
		if why := e.Outcome.Failed; why != "" {
			count[reasonSort(why)]++
		}
	}
	at, sort := 0, ""
	for e := range head.Ended.All() {
		if s := reasonSort(e.Outcome.Failed); count[s] > count[sort] {
			at, sort = e.Episode, s
		}
	}
	first, err := head.Ended.Outcome(ctx, j, at)
	if err != nil {
		return nil, err
	}
	why := first.Outcome.Failed
	f := &Fault{Episodes: count[reasonSort(why)], Why: oneLine(why), At: oneLine(panickedAt(first.Stack)), Others: len(count) - 1}
	entries, err := journal.Episode(ctx, j, first.Episode)
	for _, e := range entries {
		// An outcome has the kind of the failure only: a world does not get the message.
		if r, ok := e.(*journal.Replied); ok && r.Attempt == first.Attempt && r.Error != nil && strings.Contains(why, string(r.Error.Kind)) {
			f.Said = FailureText(r.Error, r.Act != nil)
		}
		if t, ok := e.(*journal.Turned); ok && t.Attempt == first.Attempt {
			f.trace(t.Notes)
		}
	}
	return f, err
}

// trace finds the note of code that failed.
func (f *Fault) trace(notes []world.Note) {
	for _, n := range notes {
		var of world.CodeError
		if n.Kind == "error" && json.Unmarshal(n.Data, &of) == nil && of.Text != "" && oneLine(of.Text) == f.Why {
			f.Trace = of.Trace
		}
	}
}

// codePlace matches a reason that begins with a line of code and the class of an error.
var codePlace = regexp.MustCompile(`^[^\s:]+:\d+: \w+`)

// reasonSort returns what reasons of one sort have in common: the line of code and the class of the error, or the
// text before the first number, such as a step or an amount of money.
func reasonSort(why string) string {
	if line := codePlace.FindString(why); line != "" {
		return line
	}
	if i := strings.IndexAny(why, "0123456789"); i > 0 {
		return why[:i]
	}
	return why
}

// panickedAt returns the file and line of the first function below the panic in a stack that is
// the kind's own: not of Go and not of package world. It returns "" if no function is.
func panickedAt(stack string) string {
	_, below, found := strings.Cut(stack, "\npanic(")
	if !found {
		return ""
	}
	worldPackage := reflect.TypeFor[world.Table]().PkgPath() + "." // prefix of its functions in a stack
	lines := strings.Split(below, "\n")
	goroot := "" // empty: built with -trimpath
	for i := 1; i < len(lines); i += 2 {
		function, file := lines[i-1], strings.TrimSpace(lines[i])
		if i == 1 { // panic itself
			goroot, _, _ = strings.Cut(file, "runtime/panic.go")
			continue
		}
		ofGo := strings.HasPrefix(function, "runtime.") || strings.HasPrefix(function, "internal/") || goroot != "" && strings.HasPrefix(file, goroot)
		if !ofGo && !strings.HasPrefix(function, worldPackage) {
			if at := strings.LastIndex(file, " +"); at >= 0 {
				file = file[:at]
			}
			return path.Base(file)
		}
	}
	return ""
}

// oneLine returns a text as one line of limited length.
func oneLine(text string) string {
	const limit = 200
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return string(runes)
}

// String returns the fault as part of a sentence.
func (f *Fault) String() string {
	text := f.Why
	if f.At != "" {
		text += " (" + f.At + ")"
	}
	if f.Said != "" {
		text += ": " + f.Said
	}
	return text
}

// Reasons counts why things failed, by sort. The zero value counts nothing yet.
type Reasons struct {
	count map[string]int
	first map[string]string // of each sort
}

// maxSorts limits how many sorts are counted: reasons may be anything.
const maxSorts = 1000

// Add counts a reason.
func (r *Reasons) Add(why string) {
	sort := reasonSort(why)
	if r.count == nil {
		r.count, r.first = map[string]int{}, map[string]string{}
	}
	if _, known := r.first[sort]; !known {
		if len(r.first) == maxSorts {
			return
		}
		r.first[sort] = oneLine(why)
	}
	r.count[sort]++
}

// Commonest returns the first reason of the most common sort, as one line of limited length, and how many are of this sort.
func (r *Reasons) Commonest() (why string, n int) {
	for sort, times := range r.count {
		if first := r.first[sort]; times > n || times == n && first < why {
			why, n = first, times
		}
	}
	return why, n
}
