package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/view/transcript"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// shownCall is a call and what came of it.
type shownCall struct {
	Call    string `json:"call"` // its name in its episode: 3:0, or 4.2/0:1 in a strand
	Episode int    `json:"episode"`
	Attempt int    `json:"attempt,omitempty"`
	Strand  string `json:"strand"`
	Turn    int    `json:"turn"`
	Index   int    `json:"index"`

	Seat   string    `json:"seat"`
	Label  string    `json:"label"`
	Agent  string    `json:"agent"`
	Kind   string    `json:"kind"` // ask, act or bot
	At     time.Time `json:"at"`
	Copied bool      `json:"copied,omitempty"`
	Mark   string    `json:"mark,omitempty"` // what its words do, as the kind says it
	Cost   llm.Money `json:"cost_usd"`       // to this run

	Request   *llm.Request  `json:"request,omitempty"`
	Asked     []llm.Message `json:"asked,omitempty"` // of a transcript of a record: what is new in the request
	Fallbacks []string      `json:"fallbacks,omitempty"`
	Act       *world.Act    `json:"act,omitempty"`
	Response  *llm.Response `json:"response,omitempty"`
	Error     *llm.Error    `json:"error,omitempty"`
}

func newShownCall(r *journal.Replied) *shownCall {
	c := &shownCall{
		Call: transcript.TurnName(r.Strand, r.Turn.Turn) + ":" + strconv.Itoa(r.Index), Episode: r.Episode, Attempt: r.Attempt,
		Strand: r.Strand, Turn: r.Turn.Turn, Index: r.Index, Seat: r.Seat, Label: r.Label, Agent: r.Agent, Kind: "bot",
		At: r.At.UTC(), Copied: r.Copied, Cost: r.Cost(), Request: r.Request, Act: r.Act, Response: r.Response, Error: r.Error,
	}
	switch {
	case r.Act != nil:
		c.Kind = "act"
	case r.Request != nil:
		c.Kind, c.Fallbacks = "ask", r.Request.Fallbacks
	}
	return c
}

// who is the agent in the seat.
func (c *shownCall) who() string {
	if c.Kind == "bot" {
		return c.Agent + ", a bot"
	}
	return c.Agent
}

var callRE = regexp.MustCompile(`^((?:[0-9]+\.[0-9]+/)*[0-9]+)(:[0-9]+)?$`)

func (c *showCmd) call(ctx context.Context, s *State, v *shower) error {
	m := callRE.FindStringSubmatch(c.Call)
	if m == nil {
		return usage("--call %q: write it TURN:INDEX, as 3:0, or 4.2/0:1 in a strand: --episode %d shows which there are", c.Call, *c.Episode)
	}
	name := m[1] + m[2]
	if m[2] == "" {
		name += ":0"
	}
	t, err := v.transcript(ctx, *c.Episode)
	if err != nil {
		return err
	}
	var names []string
	for _, turn := range t.Turns {
		for _, r := range turn.Replies {
			if r.Call == name {
				return c.show(s, r, r.printWhole)
			}
			names = append(names, r.Call)
		}
	}
	if len(names) == 0 {
		return usage("--call %s: episode %d has no calls yet", name, *c.Episode)
	}
	const most = 12
	there := strings.Join(names, ", ")
	if len(names) > most {
		there = strings.Join(names[:most], ", ") + ", … " + names[len(names)-1]
	}
	return usage("--call %s: episode %d has no such call with a reply: it has %s", name, *c.Episode, there)
}

// printWhole writes the call with the exact request and all that is known of the reply.
func (c *shownCall) printWhole(p *page) {
	p.put(inkHead, "call "+c.Call)
	p.line(fmt.Sprintf(" of episode %d: %s of %s (%s)", c.Episode, c.Label, c.Seat, c.who()))
	p.fact("at", stamp(c.At))
	if c.Copied {
		p.fact("copied", "from the run that this one was forked from: it cost this one nothing")
	}
	if c.Request != nil {
		c.printRequest(p)
	}
	if c.Act != nil {
		p.line()
		p.put(inkHead, "act")
		p.line()
		p.quote("  ", c.Act.Name+"\n"+string(c.Act.Body))
	}
	p.line()
	switch {
	case c.Error != nil:
		c.printFailure(p)
	case c.Response != nil:
		c.printAnswer(p)
	}
}

func (c *shownCall) printRequest(p *page) {
	p.fact("model", c.Request.Model)
	if len(c.Fallbacks) > 0 {
		p.fact("fallback", strings.Join(c.Fallbacks, ", "))
	}
	settings := *c.Request
	settings.Messages = nil
	values := map[string]json.RawMessage{}
	if b, err := marshal(settings); err == nil {
		_ = json.Unmarshal(b, &values) // our own
	}
	delete(values, "messages")
	delete(values, "model")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p.fact("", name+" "+string(values[name]))
	}
	for i := range c.Request.Messages {
		m := &c.Request.Messages[i]
		p.line()
		p.put(inkHead, string(m.Role))
		if m.ToolCallID != "" {
			p.put(inkFaint, " answers "+m.ToolCallID)
		}
		p.line()
		p.thoughts(m.Thoughts)
		for _, part := range m.Parts {
			if part.Image != nil {
				p.put(inkFaint, "  image "+oneLine(imageText(part.Image)))
				p.line()
				continue
			}
			p.quote("  ", part.Text)
		}
		p.toolCalls(m.ToolCalls)
	}
}

func imageText(i *llm.Image) string {
	if len(i.Data) > 0 {
		return fmt.Sprintf("%s, %s bytes", i.MediaType, number(len(i.Data)))
	}
	return i.URL
}

func (p *page) thoughts(thoughts []llm.Thought) {
	for _, t := range thoughts {
		p.put(inkFaint, "  thought")
		p.line()
		p.quote("    ", t.Text)
	}
}

func (p *page) toolCalls(calls []llm.ToolCall) {
	for _, t := range calls {
		p.put(inkFaint, "  calls ")
		p.line(oneLine(t.Name+" "+t.Arguments), " (", t.ID, ")")
	}
}

func (c *shownCall) printAnswer(p *page) {
	r := c.Response
	p.put(inkHead, "answer")
	p.line()
	p.thoughts(r.Thoughts)
	if r.Text != "" {
		p.quote("  ", r.Text)
	}
	if len(r.JSON) > 0 && string(r.JSON) != r.Text {
		if r.Text != "" {
			p.put(inkFaint, "  read as")
			p.line()
		}
		p.quote("  ", string(r.JSON))
	}
	if r.Refusal != "" {
		p.put(inkBad, "  refused: "+oneLine(r.Refusal))
		p.line()
	}
	p.toolCalls(r.ToolCalls)
	if c.Kind != "ask" {
		return
	}
	p.line()
	p.fact("finish", string(r.Finish))
	p.fact("answered", strings.TrimSpace(r.Provider+" "+r.Model))
	if len(r.Dropped) > 0 {
		p.fact("dropped", strings.Join(r.Dropped, ", "))
	}
	p.ids(r.ID, r.RequestID)
	p.spent(r.Usage, r.Metadata)
}

func (c *shownCall) printFailure(p *page) {
	e := c.Error
	p.put(inkBad, "failed: "+strings.ReplaceAll(string(e.Kind), "_", " "))
	p.line()
	if e.Message != "" {
		p.behind(inkBad, "  !", e.Message) // no bar: these are nobody's words
	}
	p.line()
	if where := strings.Trim(e.Provider+"/"+e.Model, "/"); where != "" {
		p.fact("by", where)
	}
	if e.Status != 0 {
		p.fact("status", strings.TrimSpace(strconv.Itoa(e.Status)+" "+e.Code))
	}
	if e.Uncertain {
		p.fact("paid", "the provider may have done the work, and may bill it")
	}
	p.ids("", e.RequestID)
	p.spent(e.Usage, e.Metadata)
}

func (p *page) ids(answer, request string) {
	if answer != "" {
		p.fact("id", answer)
	}
	if request != "" {
		p.fact("request", request)
	}
}

// spent says what a call took.
func (p *page) spent(u llm.Usage, t llm.Metadata) {
	p.fact("tokens", fmt.Sprintf("%s in, %s of them cached; %s out, %s of them thought", number(u.Input), number(u.Cached), number(u.Output), number(u.Reasoning)))
	cost := t.Cost.String()
	if t.Estimated {
		cost += ", estimated: the provider reported no usage"
	}
	p.fact("cost", cost)
	var tries strings.Builder
	tries.WriteString(number(t.Attempts))
	for _, how := range []struct {
		yes  bool
		what string
	}{
		{t.Cached, "answered by the cache"}, {t.Coalesced, "shared with an equal call"},
		{t.Hedged, "a second try overtook the first"}, {t.Parsed != "", "read as JSON: " + t.Parsed},
	} {
		if how.yes {
			tries.WriteString(", " + how.what)
		}
	}
	p.fact("tries", tries.String())
	p.fact("time", fmt.Sprintf("%v, first byte after %v, waited %v before", round(t.Latency), round(t.FirstByte), round(t.Waited)))
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
