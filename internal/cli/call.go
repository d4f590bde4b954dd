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

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/results"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Call is a call and its result.
type Call struct {
	Call    string `json:"call"` // its name in its episode: 3:0, or 4.2/0:1 in a strand
	Episode int    `json:"episode"`
	Attempt int    `json:"attempt,omitempty"`
	Strand  string `json:"strand"`
	Turn    int    `json:"turn"`
	Index   int    `json:"index"`

	Seat  string `json:"seat"`
	Label string `json:"label"`
	Agent string `json:"agent"`
	// Fallback is the agent that answered for a person after the deadline.
	Fallback string    `json:"fallback,omitempty"`
	Kind     string    `json:"kind"` // ask, act or bot
	At       time.Time `json:"at"`
	Copied   bool      `json:"copied,omitempty"`
	Mark     string    `json:"mark,omitempty"` // what the reply does, as the kind describes it
	Cost     llm.Money `json:"cost_usd"`       // to this run

	Request   *llm.Request  `json:"request,omitempty"`
	Asked     []llm.Message `json:"asked,omitempty"` // in a gateway's transcript: the new messages of the request
	Fallbacks []string      `json:"fallbacks,omitempty"`
	Act       *world.Act    `json:"act,omitempty"`
	Response  *llm.Response `json:"response,omitempty"`
	Error     *llm.Error    `json:"error,omitempty"`
	who       string        // the agent in the seat, in words
}

func newShownCall(begun *journal.Begun, r *journal.Replied) *Call {
	c := &Call{
		Call: results.TurnName(r.Strand, r.Turn.Turn) + ":" + strconv.Itoa(r.Index), Episode: r.Episode, Attempt: r.Attempt,
		Strand: r.Strand, Turn: r.Turn.Turn, Index: r.Index, Seat: r.Seat, Label: r.Label, Agent: r.Agent, Fallback: results.Fallback(begun, r), Kind: "bot",
		At: r.At.UTC(), Copied: r.Copied, Cost: r.Cost(), Request: r.Request, Act: r.Act, Response: r.Response, Error: r.Error,
	}
	c.who = results.Answerer(begun, r)
	switch {
	case r.Act != nil:
		c.Kind = "act"
	case r.Request == nil:
		c.who += ", a bot"
	default:
		if c.Kind, c.Fallbacks = "ask", r.Request.Fallbacks; r.Request.Model == world.Human {
			c.who += ", a person"
		}
	}
	return c
}

var callRE = regexp.MustCompile(`^((?:[0-9]+\.[0-9]+/)*[0-9]+)(:[0-9]+)?$`)

// Call returns the call of an episode with the given name, such as 3:0.
func (v *showReader) Call(ctx context.Context, episode int, want string) (*Call, error) {
	m := callRE.FindStringSubmatch(want)
	if m == nil {
		return nil, exit.Usagef("--call %q: want TURN:INDEX, such as 3:0, or 4.2/0:1 in a strand; --episode %d lists the calls", want, episode)
	}
	name := m[1] + m[2]
	if m[2] == "" {
		name += ":0"
	}
	t, err := v.transcript(ctx, episode)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, turn := range t.Turns {
		for _, r := range turn.Replies {
			if r.Call == name {
				return r, nil
			}
			names = append(names, r.Call)
		}
	}
	if len(names) == 0 {
		return nil, exit.Usagef("--call %s: episode %d has no calls yet", name, episode)
	}
	const maxNames = 12
	there := strings.Join(names, ", ")
	if len(names) > maxNames {
		there = strings.Join(names[:maxNames], ", ") + ", … " + names[len(names)-1]
	}
	return nil, exit.Usagef("--call %s: episode %d has no such call with a reply; it has %s", name, episode, there)
}

// PrintWhole writes the call with the exact request and everything known about the reply.
func (c *Call) PrintWhole(p *terminal.Page) {
	p.Put(terminal.InkHead, "call "+c.Call)
	p.Line(fmt.Sprintf(" of episode %d: %s of %s (%s)", c.Episode, c.Label, c.Seat, c.who))
	p.Fact("at", stamp(c.At))
	if c.Copied {
		p.Fact("copied", "from the run that this one was forked from: it cost this one nothing")
	}
	if c.Request != nil {
		c.printRequest(p)
	}
	if c.Act != nil {
		p.Line()
		p.Put(terminal.InkHead, "act")
		p.Line()
		p.Quote("  ", c.Act.Name+"\n"+string(c.Act.Body))
	}
	p.Line()
	switch {
	case c.Error != nil:
		c.printFailure(p)
	case c.Response != nil:
		c.printAnswer(p)
	}
}

func (c *Call) printRequest(p *terminal.Page) {
	p.Fact("model", world.ModelName(c.Request.Model))
	if len(c.Fallbacks) > 0 {
		p.Fact("fallback", strings.Join(c.Fallbacks, ", "))
	}
	settings := *c.Request
	settings.Messages = nil
	values := map[string]json.RawMessage{}
	if b, err := terminal.Marshal(settings); err == nil {
		_ = json.Unmarshal(b, &values) // our own
	}
	delete(values, "messages")
	delete(values, "model")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p.Fact("", name+" "+string(values[name]))
	}
	for i := range c.Request.Messages {
		m := &c.Request.Messages[i]
		p.Line()
		p.Put(terminal.InkHead, string(m.Role))
		if m.ToolCallID != "" {
			p.Put(terminal.InkFaint, " answers "+m.ToolCallID)
		}
		p.Line()
		printThoughts(p, m.Thoughts)
		for _, part := range m.Parts {
			switch {
			case part.Image != nil:
				p.Put(terminal.InkFaint, "  image "+terminal.OneLine(imageText(part.Image)))
				p.Line()
			case part.File != nil:
				p.Put(terminal.InkFaint, "  "+terminal.OneLine(part.File.String()))
				p.Line()
			default:
				p.Quote("  ", part.Text)
			}
		}
		printToolCalls(p, m.ToolCalls)
	}
}

func imageText(i *llm.Image) string {
	if len(i.Data) > 0 {
		return fmt.Sprintf("%s, %s bytes", i.MediaType, terminal.Number(len(i.Data)))
	}
	return i.URL
}

func printThoughts(p *terminal.Page, thoughts []llm.Thought) {
	for _, t := range thoughts {
		p.Put(terminal.InkFaint, "  thought")
		p.Line()
		p.Quote("    ", t.Text)
	}
}

func printToolCalls(p *terminal.Page, calls []llm.ToolCall) {
	for _, t := range calls {
		p.Put(terminal.InkFaint, "  calls ")
		p.Line(terminal.OneLine(t.Name+" "+t.Arguments), " (", t.ID, ")")
	}
}

func (c *Call) printAnswer(p *terminal.Page) {
	r := c.Response
	p.Put(terminal.InkHead, "answer")
	p.Line()
	printThoughts(p, r.Thoughts)
	if r.Text != "" {
		p.Quote("  ", r.Text)
	}
	if len(r.JSON) > 0 && string(r.JSON) != r.Text {
		if r.Text != "" {
			p.Put(terminal.InkFaint, "  read as")
			p.Line()
		}
		p.Quote("  ", string(r.JSON))
	}
	if r.Refusal != "" {
		p.Put(terminal.InkBad, "  refused: "+terminal.OneLine(r.Refusal))
		p.Line()
	}
	printToolCalls(p, r.ToolCalls)
	if c.Kind != "ask" {
		return
	}
	p.Line()
	p.Fact("finish", string(r.Finish))
	p.Fact("answered", strings.TrimSpace(r.Provider+" "+r.Model))
	if len(r.Dropped) > 0 {
		p.Fact("dropped", strings.Join(r.Dropped, ", "))
	}
	printIDs(p, r.ID, r.RequestID)
	printSpent(p, r.Usage, r.Metadata)
}

func (c *Call) printFailure(p *terminal.Page) {
	e := c.Error
	p.Put(terminal.InkBad, "failed: "+strings.ReplaceAll(string(e.Kind), "_", " "))
	p.Line()
	if e.Message != "" {
		p.Behind(terminal.InkBad, "  !", e.Message) // no bar: these are our own words
	}
	p.Line()
	if where := strings.Trim(e.Provider+"/"+e.Model, "/"); where != "" {
		p.Fact("by", where)
	}
	if e.Status != 0 {
		p.Fact("status", strings.TrimSpace(strconv.Itoa(e.Status)+" "+e.Code))
	}
	if e.Uncertain {
		p.Fact("paid", "the provider may have done the work, and may bill it")
	}
	printIDs(p, "", e.RequestID)
	printSpent(p, e.Usage, e.Metadata)
}

func printIDs(p *terminal.Page, answer, request string) {
	if answer != "" {
		p.Fact("id", answer)
	}
	if request != "" {
		p.Fact("request", request)
	}
}

// printSpent writes the tokens, cost and time of a call.
func printSpent(p *terminal.Page, u llm.Usage, t llm.Metadata) {
	in := fmt.Sprintf("%s in, %s of them cached", terminal.Number(u.Input), terminal.Number(u.Cached))
	if u.Audio > 0 {
		in += fmt.Sprintf(", %s of them of audio", terminal.Number(u.Audio))
	}
	p.Fact("tokens", fmt.Sprintf("%s; %s out, %s of them thought", in, terminal.Number(u.Output), terminal.Number(u.Reasoning)))
	cost := t.Cost.String()
	if t.Estimated {
		cost += ", estimated: the provider reported no usage"
	}
	p.Fact("cost", cost)
	var tries strings.Builder
	tries.WriteString(terminal.Number(t.Attempts))
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
	p.Fact("tries", tries.String())
	p.Fact("time", fmt.Sprintf("%v, first byte after %v, waited %v before", round(t.Latency), round(t.FirstByte), round(t.Waited)))
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
