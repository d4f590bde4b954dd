package gateway

import (
	"fmt"
	"strings"
	"sync"

	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// replay is the record of a session, to be served again: each call once, until it is rewound.
type replay struct {
	rules   *format.Rules
	aliases map[string]string
	nearest float64

	mu     sync.Mutex
	calls  []Call
	served []bool
	first  int // all calls before it were served
	same   map[[16]byte][]int
	loose  map[[32]byte][]int    // by fingerprint; nil until needed
	words  map[int]*format.Words // of calls that were compared and not served
	found  int
	missed int
}

// servedCall is a recorded call that answers another.
type servedCall struct {
	*Call
	// How it was found: Exact, Loose or Nearest.
	How string
	// Share is the share of equal words, and Difference describes the differences. Both are for Nearest only.
	Share      float64
	Difference string
}

// How a recorded call is found.
const (
	howExact   = "exact"
	howLoose   = "rules"   // it differs only as the rules allow
	howNearest = "nearest" // it is the most similar call that was left
)

// newReplay returns the replay of calls. It includes failures only if nothing is asked: on resume, asking again may
// succeed. It never includes an answer that a client did not wait for.
func newReplay(calls []Call, c *Config) *replay {
	p := &replay{rules: c.Rules, aliases: c.Aliases, same: map[[16]byte][]int{}, words: map[int]*format.Words{}}
	if c.Replay {
		p.nearest = c.Nearest
	}
	for i := range calls {
		c1 := &calls[i]
		if c1.Wire.Status == 0 || c1.Wire.Cut || c1.Error != nil && !c.Replay {
			continue
		}
		p.same[c1.Digest] = append(p.same[c1.Digest], len(p.calls))
		p.calls = append(p.calls, *c1)
	}
	p.served = make([]bool, len(p.calls))
	return p
}

// Take returns the recorded call that answers c, or nil. Each is returned once.
func (p *replay) Take(c *format.Call) *servedCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, out := p.find(c)
	if i < 0 {
		p.missed++
		return nil
	}
	out.Call = &p.calls[i]
	p.found++
	p.served[i] = true
	delete(p.words, i)
	for p.first < len(p.served) && p.served[p.first] {
		p.first++
	}
	return out
}

// rewind makes every call available again.
func (p *replay) rewind() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.served)
	p.first, p.found, p.missed = 0, 0, 0
}

// find finds a call that was not served: an equal one, one that differs as the rules allow, or the nearest. It
// returns its index, or -1.
func (p *replay) find(c *format.Call) (int, *servedCall) {
	if i := p.unserved(p.same[c.Turn()], nil); i >= 0 {
		return i, &servedCall{How: howExact}
	}
	if p.rules != nil && c.API.Asks() {
		if sum, ok := p.rules.Digest(string(c.API), &c.Request); ok {
			if i := p.unserved(p.looseIndex()[sum], c); i >= 0 {
				return i, &servedCall{How: howLoose}
			}
		}
	}
	if p.nearest > 0 {
		return p.closest(c)
	}
	return -1, nil
}

// unserved returns the first of list that was not served and, unless c is nil, fits c.
func (p *replay) unserved(list []int, c *format.Call) int {
	for _, i := range list {
		if !p.served[i] && (c == nil || p.fits(&p.calls[i], c)) {
			return i
		}
	}
	return -1
}

// looseIndex indexes the calls by what the rules leave of them.
func (p *replay) looseIndex() map[[32]byte][]int {
	if p.loose == nil {
		p.loose = map[[32]byte][]int{}
		for i := range p.calls {
			if q := p.calls[i].Request; q != nil {
				if sum, ok := p.rules.Digest(p.calls[i].Label, q); ok {
					p.loose[sum] = append(p.loose[sum], i)
				}
			}
		}
	}
	return p.loose
}

// fits reports whether a recorded answer has the form and the model that c wants.
func (p *replay) fits(was *Call, c *format.Call) bool {
	streamed := strings.HasPrefix(was.Wire.Type, "text/event-stream")
	return was.Label == string(c.API) && (streamed == c.Stream || was.Wire.Status >= 400) &&
		(was.Request == nil || p.rules.AnyModel() || sameModel(was.Request.Model, c.Request.Model, p.aliases))
}

// nearestWindow is how many calls that were not served a call is compared with.
const nearestWindow = 32

// closest finds the call with the most words in common with c, of the next ones that were not served. A count
// of tokens has no words in the record: the next one is taken.
func (p *replay) closest(c *format.Call) (int, *servedCall) {
	best, share, compared := -1, 0.0, 0
	mine := p.rules.Words(&c.Request)
	for i := p.first; i < len(p.calls) && compared < nearestWindow; i++ {
		was := &p.calls[i]
		if p.served[i] || !p.fits(was, c) {
			continue
		}
		if was.Request == nil {
			if c.API.Counts() {
				return i, &servedCall{How: howNearest, Difference: "the record does not have what was counted, so the next recorded token count is served"}
			}
			continue
		}
		compared++
		if p.words[i] == nil {
			p.words[i] = p.rules.Words(was.Request)
		}
		if s := mine.Share(p.words[i]); s > share {
			best, share = i, s
		}
	}
	if best < 0 || share < p.nearest {
		return -1, nil
	}
	return best, &servedCall{How: howNearest, Share: share, Difference: p.differences(p.calls[best].Request, &c.Request)}
}

// Diverged describes how a call that is not recorded differs from the next recorded one.
func (p *replay) Diverged(c *format.Call) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first >= len(p.calls) {
		return fmt.Sprintf("all %d recorded calls of it were served, and this is one more: close the session to have them served again", len(p.calls))
	}
	was := &p.calls[p.first]
	place := fmt.Sprintf("turn %d differs from what was recorded: ", was.Turn.Turn)
	switch {
	case was.Label != string(c.API):
		return place + fmt.Sprintf("it was a call of %s, and is one of %s", was.Label, c.API)
	case was.Request == nil:
		return place + "something else was asked for"
	}
	if where := p.differences(was.Request, &c.Request); where != "" {
		return place + where
	}
	return place + "the difference is in a part of the request that is not recorded"
}

// Missing describes the first call that is not found while recorded calls are left. For other calls it returns
// "".
func (p *replay) Missing(c *format.Call) string {
	p.mu.Lock()
	first := p.missed == 1 && p.first < len(p.calls)
	p.mu.Unlock()
	if !first {
		return ""
	}
	return p.Diverged(c)
}

// replayStatus counts the calls of a session against its record.
type replayStatus struct {
	Calls  int `json:"calls"`  // in the record
	Found  int `json:"found"`  // calls answered from the record
	Missed int `json:"missed"` // calls not in the record
}

func (p *replay) status() *replayStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &replayStatus{len(p.calls), p.found, p.missed}
}

// maxDifferences is how many differences of two requests are reported.
const maxDifferences = 3

// differences describes how two requests differ, or returns "". Models come last: the record has the model
// that was asked, with its provider, and a request may have an alias.
func (p *replay) differences(was, is *llm.Request) string {
	all := p.rules.Differences(was, is)
	if !p.rules.AnyModel() && !sameModel(was.Model, is.Model, p.aliases) {
		all = append(all, fmt.Sprintf("model: it was %s, and is %q", was.Model, is.Model))
	}
	if n := len(all) - maxDifferences; n > 0 {
		all = append(all[:maxDifferences], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(all, "; ")
}

// sameModel reports whether a request for a model means the recorded one, which has its provider's name.
func sameModel(was, is string, aliases map[string]string) bool {
	return is == was || aliases[is] == was || strings.HasSuffix(was, "/"+is)
}
