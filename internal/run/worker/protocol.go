package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
)

// protocol is the version of the protocol: see docs/reference/worker-protocol.md.
const protocol = 1

// hello is the first line of the engine.
type hello struct {
	Parley int    `json:"parley"`
	File   string `json:"file,omitempty"`
	Class  string `json:"class"`
	Role   role   `json:"role,omitempty"`
	Limit  int    `json:"limit"` // seconds that a step may take
}

// description is the first line of a worker.
type description struct {
	Parley   int               `json:"parley"`
	Language string            `json:"language"`
	Version  int               `json:"version"`
	Files    map[string]string `json:"files"` // the SHA-256 of the files of the code
	Doc      string            `json:"doc"`
	Durable  string            `json:"durable"` // turn or episode
	Params   []paramField      `json:"params"`
	Judges   map[string]string `json:"judges"` // of a scorer: models by seat
	StandIn  bool              `json:"stand_in"`
	Limit    float64           `json:"limit"` // seconds that a step may take; 0: those of hello
	Error    *fault            `json:"error"`
}

// fault is an error of the world's code.
type fault = world.CodeError

// paramError returns a fault as an error of params, if it names one.
func paramError(f *fault, kind string) error {
	switch {
	case f == nil:
		return nil
	case f.Param == "":
		return f
	}
	c := world.ParamErrors{Kind: kind}
	c.Addf(f.Param, "%s", f.Text)
	return c.Err()
}

// request is what the engine asks of a worker. The id is added when it is sent.
type request struct {
	Op      string            `json:"op"`
	Episode string            `json:"episode,omitempty"`
	Strand  string            `json:"strand"`
	Params  json.RawMessage   `json:"params,omitempty"`
	Lineup  map[string]string `json:"lineup,omitempty"`
	Seed    string            `json:"seed,omitempty"`
	Deal    int               `json:"deal"`
	Replies []world.Reply     `json:"replies,omitempty"`
	Of      string            `json:"of"`
	Index   int               `json:"index"`
	Act     *world.Act        `json:"act,omitempty"`
	Key     string            `json:"key,omitempty"` // of an act
	Model   string            `json:"model,omitempty"`
	Request *llm.Request      `json:"request,omitempty"`
	Args    any               `json:"args,omitempty"`
	Played  json.RawMessage   `json:"played,omitempty"`
	Text    string            `json:"text,omitempty"` // why calls are refused
}

// answer is what a worker answers to any request. Its id is read before.
type answer struct {
	Error *fault `json:"error"`

	// A step: notes, and one of Ask, Fork and End.
	Notes []world.Note `json:"notes"`
	Ask   []call       `json:"ask"`
	Fork  *int         `json:"fork"`
	End   *outcome     `json:"end"`

	Seats    []string        `json:"seats"`
	Measures []world.Measure `json:"measures"`
	Result   json.RawMessage `json:"result"`
	Text     *string         `json:"text"`
	Calls    []llm.ToolCall  `json:"calls"`  // of a stand-in that calls tools
	Memory   int64           `json:"memory"` // bytes that the worker has in use, at the end of an episode

	refused error // what is wrong with a call of Ask, which was not read
	broken  error // a rule that the step breaks
}

// Limits of what a worker may make the engine hold: see docs/reference/worker-protocol.md.
const (
	maxStrands  = 10_000    // of an episode that have not ended
	maxDepth    = 100       // forks inside each other
	maxCalls    = 10_000    // of an episode that wait for replies
	maxMessages = 1_000_000 // of these calls together, and that a worker sends in all
	maxBytes    = 256 << 20 // of all steps of an episode and what they answer
)

// verb returns an error if the step breaks a rule, such as to do exactly one thing.
func (a *answer) verb() error {
	if a.broken != nil {
		return a.broken
	}
	var has []string
	for _, v := range []struct {
		name  string
		there bool
	}{{"ask", a.Ask != nil || a.refused != nil}, {"fork", a.Fork != nil}, {"end", a.End != nil}, {"error", a.Error != nil}} {
		if v.there {
			has = append(has, v.name)
		}
	}
	switch {
	case len(has) == 0:
		return errors.New("it has no ask, fork, end or error: a step has one of them")
	case len(has) > 1:
		return fmt.Errorf("it has %s: a step has only one of ask, fork, end and error", strings.Join(has, " and "))
	case a.Ask != nil && len(a.Ask) == 0:
		return errors.New("its ask has no calls: want one or more")
	case a.Fork != nil && *a.Fork < 1:
		return fmt.Errorf("its fork is %d: want 1 or more strands", *a.Fork)
	}
	return nil
}

// outcome is the result of an episode.
type outcome struct {
	Scores []world.Score   `json:"scores"`
	Data   json.RawMessage `json:"data"`
	Failed string          `json:"failed"`
}

func (o *outcome) world() world.Outcome {
	out := world.Outcome{Scores: o.Scores, Failed: o.Failed}
	if len(o.Data) > 0 && string(o.Data) != "null" {
		out.Data = o.Data
	}
	if out.Failed != "" {
		out.Scores = nil
	}
	return out
}

// call is a call of a step.
type call struct {
	Seat  string     `json:"seat"`
	Label string     `json:"label"`
	Talk  int        `json:"talk"` // 0: none
	Keep  int        `json:"keep"`
	Act   *world.Act `json:"act"`
	llm.Request
}

// refused says what is wrong with the call.
func (c *call) refused(err error) error {
	if c.Label == "" {
		return fmt.Errorf("the call to the seat %q: %w", c.Seat, err)
	}
	return fmt.Errorf("the call %q to the seat %q: %w", c.Label, c.Seat, err)
}

// continued returns the messages of a call, and stores them if they are a talk.
func (c *call) continued(talks map[int][]llm.Message) ([]llm.Message, error) {
	if c.Talk == 0 {
		return c.Messages, nil
	}
	known := talks[c.Talk]
	if c.Keep < 0 || c.Keep > len(known) {
		return nil, fmt.Errorf("the worker keeps %d messages of talk %d, which has %d", c.Keep, c.Talk, len(known))
	}
	all := append(known[:c.Keep:c.Keep], c.Messages...)
	if c.Keep == len(known) { // it grows: the messages of earlier requests stay as they are
		all = append(known, c.Messages...)
	}
	talks[c.Talk] = all
	return slices.Clip(all), nil
}
