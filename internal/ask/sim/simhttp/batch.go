package simhttp

import (
	"encoding/json"
	"math/rand/v2"
	"sync"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/batches"
	"parley/llm"
)

// BatchConfig is the behavior of batches.
type BatchConfig struct {
	// Latency is how long a batch takes. Default: 2 s
	Latency sim.Delay
	// MaxRequests is the maximum number of requests in a batch. Default: 50,000, and 100,000 in
	// Anthropic's format
	MaxRequests int
	// MaxBytes is the maximum size of a batch. Default: 200 MB, and 256 MB in Anthropic's format
	MaxBytes int64
	// PerHour is the maximum number of batches created in an hour. Default: 2,000
	PerHour int
	// EnqueuedTokens is the maximum number of prompt tokens of one model that wait in batches. A
	// batch that exceeds it is created and then fails (OpenAI's format). Default: 0, no limit
	EnqueuedTokens int
	// RetryAfter is when a batch that is refused with 429 may be created again. Default: 1 min
	RetryAfter time.Duration
	// MaxStored is the maximum size of all files. Default: 4 GB
	MaxStored int64
}

// Host is the server that a batchStore belongs to.
type Host interface {
	// NewID returns an ID that no other object has.
	NewID(prefix string) string
	// Answer answers a request in a batch. url is the path of the endpoint.
	Answer(url string, body []byte, now time.Time) Answer
	// Fault draws a fault of a batch with that content.
	Fault(content []byte) sim.Fault
}

// Answer is the answer to a request in a batch. Where Err is set, there is no Body.
type Answer struct {
	Body  []byte
	Usage llm.Usage
	Fault sim.Fault
	Err   *Error
}

// BatchStats counts batches, and the requests in them.
type BatchStats struct {
	Created   int64 `json:"created"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Expired   int64 `json:"expired"`
	Cancelled int64 `json:"cancelled"`
	Requests  int64 `json:"requests"`
}

// vendor is the one whose batch API is simulated.
type vendor string

const (
	openAI         vendor = "openai"
	batchAnthropic vendor = "anthropic"
	batchGemini    vendor = "gemini"
	mistral        vendor = "mistral"
	together       vendor = "together"
	xai            vendor = "xai"
)

// style returns how the vendor writes errors.
func (v vendor) style() sim.Style {
	switch v {
	case batchAnthropic:
		return sim.Anthropic
	case batchGemini:
		return sim.Google
	default:
		return sim.OpenAI
	}
}

// batch is a batch of any vendor. Its age says which state it is in.
type batch struct {
	id       string
	vendor   vendor
	name     string // given by the client
	endpoint string
	fileID   string
	metadata map[string]any
	// inline has the lines of requests that came with one of Gemini's batches, and metadatas what else the client said of each. Both are nil
	// if the requests are in a file.
	inline    []byte
	metadatas []json.RawMessage
	created   time.Time
	takes     time.Duration
	fault     sim.Fault

	mu        sync.Mutex
	lines     []batches.MessageLine
	model     string
	tokens    int             // of all prompts
	faults    []batches.Fault // why it failed
	checked   bool            // its lines were checked
	cancelled time.Time       // when it was canceled
	done      *results        // once it has ended
}

// results are the results of a batch that has ended.
type results struct {
	state             string
	at                time.Time
	outputID, errorID string
	content           []byte // Anthropic's, xAI's, and Gemini's if its requests came with the batch
	counts            batches.MessageCounts
	usage             llm.Usage
}

// Shares of a batch's time after which a state ends.
const (
	validatedAt = 0.1
	finalizedAt = 0.9
	cancelTakes = 0.05
)

func (b *batch) after(share float64) time.Time {
	return b.created.Add(time.Duration(share * float64(b.takes)))
}

// progress returns how many requests the batch has answered at a time.
func (b *batch) progress(now time.Time) int {
	from, to := b.after(validatedAt), b.after(finalizedAt)
	switch {
	case !now.After(from):
		return 0
	case !now.Before(to):
		return len(b.lines)
	}
	return int(float64(len(b.lines)) * float64(now.Sub(from)) / float64(to.Sub(from)))
}

// state returns the state of the batch, and does the work that is due. The caller has locked b.
func (s *batchStore) state(b *batch, now time.Time) string {
	if b.done != nil {
		return b.done.state
	}
	if now.Before(b.after(validatedAt)) && b.cancelled.IsZero() {
		return batches.Validating
	}
	s.check(b, now)
	switch {
	case b.done != nil:
		return b.done.state
	case !b.cancelled.IsZero():
		end := b.cancelled.Add(time.Duration(cancelTakes * float64(b.takes)))
		if now.Before(end) {
			return batches.Cancelling
		}
		s.finish(b, b.progress(b.cancelled), batches.Cancelled, end)
		return b.done.state
	case now.Before(b.after(finalizedAt)):
		return batches.InProgress
	case now.Before(b.after(1)):
		return batches.Finalizing
	}
	s.finish(b, len(b.lines), batches.Completed, b.after(1))
	return b.done.state
}

// check checks the lines of a batch once, and fails the batch if they are wrong.
func (s *batchStore) check(b *batch, now time.Time) {
	if b.checked {
		return
	}
	b.checked = true
	if b.vendor != batchAnthropic {
		s.checkLines(b, now)
	}
	if len(b.faults) > 0 {
		b.done = &results{state: batches.Failed, at: b.after(validatedAt)}
		s.count(func(n *BatchStats) { n.Failed++ })
	}
}

// finish answers some of the requests, in random order, and gives up the rest.
func (s *batchStore) finish(b *batch, answered int, state string, at time.Time) {
	res := &results{state: state, at: at}
	var out, bad []byte
	order := rand.New(rand.NewPCG(s.seed, uint64(len(b.lines)))).Perm(len(b.lines))
	for rank, i := range order {
		l := &b.lines[i]
		if rank >= answered {
			res.counts.Canceled++
			bad = append(bad, s.lost(b, l, "canceled")...)
			continue
		}
		a := s.host.Answer(b.endpoint, l.Params, b.after(finalizedAt))
		switch {
		case a.Fault == sim.FaultLineExpired:
			res.counts.Expired++
			bad = append(bad, s.lost(b, l, "expired")...)
			continue
		case a.Err != nil:
			res.counts.Errored++
			bad = append(bad, s.failed(b, l, a.Err)...)
			continue
		}
		res.counts.Succeeded++
		res.usage = res.usage.Plus(a.Usage)
		line := s.succeeded(b, l, a.Body)
		if a.Fault != sim.FaultLineMissing {
			out = append(out, line...)
		}
		if a.Fault == sim.FaultLineDuplicate {
			out = append(out, line...)
		}
	}
	if res.counts.Expired > 0 && state == batches.Completed {
		res.state = batches.Expired
	}
	s.store(b, res, out, bad)
	b.done, b.lines = res, nil
	s.count(func(n *BatchStats) {
		n.Requests += int64(res.counts.Succeeded)
		switch res.state {
		case batches.Expired:
			n.Expired++
		case batches.Cancelled:
			n.Cancelled++
		default:
			n.Completed++
		}
	})
}
