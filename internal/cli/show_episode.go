package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/read/report"
	"parley/internal/read/score"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
)

// shownTranscript is an episode with everything that happened in its last attempt.
type shownTranscript struct {
	File string `json:"file"`
	results.Episode
	Params  json.RawMessage `json:"params,omitempty"`
	Turns   []*shownTurn    `json:"turns"`
	Outcome *shownOutcome   `json:"outcome,omitempty"`
	Texts   []score.Text    `json:"texts,omitempty"` // written about it afterwards

	run    results.State
	read   *results.Part
	played world.Played

	// The filters, if not everything is shown.
	Seat       string `json:"only_seat,omitempty"`
	OnlyFailed bool   `json:"only_failed,omitempty"`
}

// shownTurn is a turn of a strand: its notes, then its calls.
type shownTurn struct {
	Strand  string       `json:"strand"`
	Turn    int          `json:"turn"`
	Notes   []world.Note `json:"notes,omitempty"`
	Calls   int          `json:"calls"`
	Replies []*shownCall `json:"replies"` // the recorded ones, in call order
}

// shownOutcome is the outcome of the episode.
type shownOutcome struct {
	At     time.Time       `json:"at"`
	Failed string          `json:"failed,omitempty"`
	Scores results.Scores  `json:"scores"`
	Data   json.RawMessage `json:"data,omitempty"`
	Stack  string          `json:"stack,omitempty"`
}

// shownCall is a call and its result.
type shownCall struct {
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

func newShownCall(begun *journal.Begun, r *journal.Replied) *shownCall {
	c := &shownCall{
		Call: results.CallName(r), Episode: r.Episode, Attempt: r.Attempt,
		Strand: r.Strand, Turn: r.Turn.Turn, Index: r.Index, Seat: r.Seat, Label: r.Label, Agent: r.Agent, Fallback: results.Fallback(begun, r), Kind: r.Kind(),
		At: r.At.UTC(), Copied: r.Copied, Cost: r.Cost(), Act: r.Act, Response: r.Response, Error: r.Error, who: results.Answerer(begun, r),
	}
	switch {
	case c.Kind == journal.Bot:
		c.who += ", a bot"
	case c.Kind == journal.Ask:
		if c.Fallbacks = r.Request.Fallbacks; r.Request.Model == world.Human {
			c.who += ", a person"
		}
	}
	return c
}

// transcript returns an episode without the requests, which --call shows. If seat is set, it keeps
// only that seat; if failed is set, only failed calls.
func (v *showReader) transcript(ctx context.Context, episode int, seat string, failed bool) (*shownTranscript, error) {
	t, err := v.readTranscript(ctx, episode)
	if err != nil {
		return nil, err
	}
	if err := t.read.Mark(v.kind.Of(t.played.Spec)); err != nil {
		v.tell(err.Error())
	}
	t.addTurns(v.about.Begun)
	if err := t.filter(seat, failed); err != nil {
		return nil, err
	}
	size := int64(0)
	for _, turn := range t.Turns {
		for _, n := range turn.Notes {
			size += int64(len(n.Data))
		}
		for _, r := range turn.Replies {
			size += results.MessagesSize(r.Asked)
			if r.Response != nil {
				size += int64(len(r.Response.Text) + len(r.Response.JSON))
			}
		}
	}
	if err := v.tooMuch(fmt.Sprintf("episode %d", episode), size, "--call shows one call, and parley export --table calls --max-size MB writes all"); err != nil {
		return nil, err
	}
	if !failed {
		t.Texts, err = v.texts(ctx, episode)
		t.Texts = slices.DeleteFunc(t.Texts, func(x score.Text) bool { return seat != "" && x.Seat != seat })
	}
	return t, err
}

// readTranscript reads an episode, without its turns: see addTurns.
func (v *showReader) readTranscript(ctx context.Context, n int) (*shownTranscript, error) {
	var l *runfile.Listed
	if n >= 0 {
		list, err := v.store.List(ctx, runfile.Listing{From: n, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			l = &list[0]
		}
	}
	if l == nil || l.Episode != n {
		return nil, v.noEpisode(n)
	}
	e, err := v.episode(ctx, l)
	if err != nil {
		return nil, err
	}
	read, err := results.ReadLines(ctx, v.store, v.about.Begun, v.kind.Of(l.Spec), n, e.Attempt, results.Wanted{})
	if err != nil {
		return nil, err
	}
	if read.Failed != nil {
		v.tell(read.Failed.Error())
	}
	t := &shownTranscript{run: results.StatusOf(v.about, runfile.Played(v.file)).State, File: v.file, Episode: e, Params: l.Spec.Params, Turns: []*shownTurn{}, read: read, played: world.Played{Episode: n, Spec: l.Spec}}
	if end := l.Ended; end != nil {
		t.played.Outcome = end.Outcome
		t.Outcome = &shownOutcome{At: end.At.UTC(), Failed: end.Outcome.Failed, Scores: end.Outcome.Scores, Stack: end.Stack}
		t.Outcome.Data, _ = end.Outcome.Data.(json.RawMessage)
	}
	return t, nil
}

// addTurns adds the turns.
func (t *shownTranscript) addTurns(begun *journal.Begun) {
	marks := t.read.Marks()
	for _, turn := range t.read.Turns {
		shown := &shownTurn{Strand: turn.Strand, Turn: turn.Number, Notes: turn.Notes, Replies: []*shownCall{}}
		if turn.Turned != nil {
			shown.Calls = turn.Turned.Calls
		}
		for _, r := range turn.Replies {
			c := newShownCall(begun, r)
			c.Mark, c.Asked = marks[c.Call], t.read.Asked[r]
			shown.Replies = append(shown.Replies, c)
		}
		t.Turns = append(t.Turns, shown)
	}
}

// maxShown is how many bytes are shown. More than that is for a file.
const maxShown = 256e6

// tooMuch returns an error if so many bytes cannot be shown.
func (v *showReader) tooMuch(what string, size int64, instead string) error {
	if size <= maxShown {
		return nil
	}
	return exit.Usagef("%s: %s has %s MB when its texts are written out, and at most %s MB are shown; %s", v.file, what, terminal.Number(int(size/1e6)), terminal.Number(int(maxShown/1e6)), instead)
}

// noEpisode returns the error for an episode that does not exist.
func (v *showReader) noEpisode(n int) error {
	if v.about.Episodes.Total == 0 {
		return exit.Usagef("%s has no episodes yet", v.file)
	}
	return exit.Usagef("%s has no episode %d: it has 0 to %d", v.file, n, v.about.Episodes.Total-1)
}

// filter removes what does not belong to seat, if one is given, and with failed all calls that did not fail.
func (t *shownTranscript) filter(seat string, failed bool) error {
	if seat == "" && !failed {
		return nil
	}
	if _, ok := t.Lineup[seat]; seat != "" && !ok && len(t.Lineup) > 0 {
		return exit.Usagef("--seat %q: no such seat; the seats are %s", seat, strings.Join(slices.Sorted(maps.Keys(t.Lineup)), ", "))
	}
	t.Seat, t.OnlyFailed = seat, failed
	for _, turn := range t.Turns {
		turn.Notes = slices.DeleteFunc(turn.Notes, func(n world.Note) bool { return failed || n.Seat != seat })
		turn.Replies = slices.DeleteFunc(turn.Replies, func(r *shownCall) bool {
			return seat != "" && r.Seat != seat || failed && r.Error == nil
		})
	}
	t.Turns = slices.DeleteFunc(t.Turns, func(turn *shownTurn) bool { return len(turn.Notes)+len(turn.Replies) == 0 })
	return nil
}

// filterText describes the filters.
func (t *shownTranscript) filterText() string {
	words := "what is of " + t.Seat
	if t.OnlyFailed {
		words = "calls that failed"
		if t.Seat != "" {
			words += ", of " + t.Seat
		}
	}
	return words
}

// print prints the transcript.
func (t *shownTranscript) print(p *terminal.Page) {
	p.Put(terminal.InkHead, fmt.Sprintf("episode %d", t.Number))
	p.Put(terminal.InkPlain, " of "+t.File+": ")
	p.InkedLine(stateInk(t.State), t.run.OfEpisode(t.State))
	if t.Attempt > 0 {
		p.Fact("attempt", fmt.Sprintf("%d: those before failed, or were given up", t.Attempt))
	}
	if t.Cell != "" && t.Cell != results.LineupText(t.Lineup) {
		p.Fact("cell", t.Cell)
	}
	p.Fact("lineup", results.LineupText(t.Lineup))
	p.Fact("deal", strconv.Itoa(t.Deal))
	p.Fact("calls", terminal.Number(t.Calls)+", "+t.Cost.String())
	printBesideCalls(p, t.Spending)
	if n := t.Failures(); n > 0 {
		p.Fact("failed", terminal.Number(n)+" of them")
	}
	all := t.Seat == "" && !t.OnlyFailed
	if !all {
		p.Fact("only", t.filterText())
	}
	printed := map[string]bool{}
	for _, turn := range t.Turns {
		turn.print(p, printed, all)
	}
	if t.Outcome != nil {
		t.Outcome.print(p)
	}
	printTexts(p, t.Texts)
}

// print writes the turn. If all is set, it says which replies are missing.
func (t *shownTurn) print(p *terminal.Page, printed map[string]bool, all bool) {
	indent := strings.Repeat("    ", strings.Count(t.Strand, "/"))
	p.Line()
	p.InkedLine(terminal.InkHead, indent+"turn "+results.TurnName(t.Strand, t.Turn))
	indent += "  "
	for _, n := range t.Notes {
		if name := n.Phase(); name != "" {
			p.InkedLine(terminal.InkHead, indent+terminal.OneLine("phase "+name))
			continue
		}
		who := ""
		if n.Seat != "" {
			who = ", " + n.Seat
		}
		p.InkedLine(terminal.InkFaint, indent+terminal.OneLine("note "+n.Kind+who+": "+brief(n.Data, printed)))
	}
	for _, r := range t.Replies {
		r.print(p, indent)
		if r.Response != nil {
			printed[strings.TrimSpace(r.Response.Text)] = true
		}
	}
	if open := t.Calls - len(t.Replies); all && open > 0 {
		p.InkedLine(terminal.InkFaint, fmt.Sprintf("%swaiting for %d of %d replies", indent, open, t.Calls))
	}
}

// brief returns a note without the words that are already printed above it.
func brief(note json.RawMessage, printed map[string]bool) string {
	text := string(note)
	var fields map[string]json.RawMessage
	if json.Unmarshal(note, &fields) != nil {
		return text
	}
	for _, value := range fields {
		var words string
		if json.Unmarshal(value, &words) == nil && words != "" && printed[words] {
			text = strings.Replace(text, string(value), `"…"`, 1)
		}
	}
	return text
}

// noSeat is who does an act that is for no seat.
const noSeat = "the world"

// print writes the result of a call, below a heading with the seat and the name of the call. A failure never
// looks like words of a model.
func (c *shownCall) print(p *terminal.Page, indent string) {
	p.Put(terminal.InkName, indent+cmp.Or(c.Seat, noSeat))
	if c.who != "" {
		p.Put(terminal.InkPlain, " ("+c.who+")")
	}
	p.Put(terminal.InkPlain, ", "+c.Label)
	p.Put(terminal.InkFaint, "  ["+c.Call+"]")
	if c.Copied {
		p.Put(terminal.InkFaint, " copied")
	}
	if c.Mark != "" {
		p.Put(terminal.InkBad, "  * "+terminal.OneLine(c.Mark))
	}
	p.Line()
	indent += "  "
	if c.Act != nil {
		p.Put(terminal.InkFaint, indent+"does ")
		p.Line(terminal.OneLine(c.Act.Name + " " + string(c.Act.Body)))
	}
	c.printAsked(p, indent)
	if c.Error != nil {
		p.InkedLine(terminal.InkBad, indent+"failed: "+terminal.OneLine(c.Error.Error()))
		return
	}
	c.printReply(p, indent)
}

// maxAsked is how many characters of a message are shown above an answer.
const maxAsked = 2000

// printAsked writes the new messages of the request above the answer.
func (c *shownCall) printAsked(p *terminal.Page, indent string) {
	for i := range c.Asked {
		m := &c.Asked[i]
		p.InkedLine(terminal.InkName, indent+string(m.Role))
		text := m.Words()
		p.Quote(indent, terminal.Cut(text, maxAsked))
		if n := utf8.RuneCountInString(text); n > maxAsked {
			p.InkedLine(terminal.InkFaint, fmt.Sprintf("%s(%s characters: --call %s shows all of them)", indent, terminal.Number(n), c.Call))
		}
	}
	if len(c.Asked) > 0 && c.Error == nil {
		p.InkedLine(terminal.InkName, indent+"answer")
	}
}

func (c *shownCall) printReply(p *terminal.Page, indent string) {
	r := c.Response
	if r == nil {
		p.InkedLine(terminal.InkBad, indent+"failed: no reply was recorded")
		return
	}
	empty := true
	if text := cmp.Or(r.Text, string(r.JSON)); text != "" {
		empty = false
		p.Quote(indent, text)
	}
	for _, t := range r.ToolCalls {
		empty = false
		p.Put(terminal.InkFaint, indent+"calls ")
		p.Line(terminal.OneLine(t.Name + " " + t.Arguments))
	}
	switch {
	case r.Refusal != "":
		p.Put(terminal.InkBad, indent+"refused: "+terminal.OneLine(r.Refusal))
	case r.Finish == llm.FinishLength:
		p.Put(terminal.InkFaint, indent+"(cut off at its maximum length)")
	case r.Finish == llm.FinishRefused, r.Finish == llm.FinishAborted:
		p.Put(terminal.InkBad, indent+"("+string(r.Finish)+")")
	case empty:
		p.Put(terminal.InkFaint, indent+"(no words)")
	default:
		return
	}
	p.Line()
}

func (o *shownOutcome) print(p *terminal.Page) {
	p.Line()
	p.InkedLine(terminal.InkHead, "outcome")
	if o.Failed != "" {
		p.InkedLine(terminal.InkBad, "  failed: "+terminal.OneLine(o.Failed))
	}
	for i := 0; i < len(o.Scores); {
		n := i + 1
		for n < len(o.Scores) && o.Scores[n].Seat == o.Scores[i].Seat {
			n++
		}
		p.Line("  ", scoresText(o.Scores[i:n]))
		i = n
	}
	if len(o.Data) > 0 && string(o.Data) != "null" {
		p.InkedLine(terminal.InkFaint, "  "+terminal.OneLine(string(o.Data)))
	}
	if o.Stack != "" {
		p.Quote("  ", o.Stack)
	}
}

var callRE = regexp.MustCompile(`^((?:[0-9]+\.[0-9]+/)*[0-9]+)(:[0-9]+)?$`)

// call returns the call of an episode with the given name, such as 3:0.
func (v *showReader) call(ctx context.Context, episode int, want string) (*shownCall, error) {
	m := callRE.FindStringSubmatch(want)
	if m == nil {
		return nil, exit.Usagef("--call %q: want TURN:INDEX, such as 3:0, or 4.2/0:1 in a strand; --episode %d lists the calls", want, episode)
	}
	name := m[1] + m[2]
	if m[2] == "" {
		name += ":0"
	}
	t, err := v.readTranscript(ctx, episode)
	if err != nil {
		return nil, err
	}
	if r := t.read.Call(name); r != nil {
		if err := t.read.Fill(r); err != nil {
			return nil, err
		}
		c := newShownCall(v.about.Begun, r)
		c.Request = r.Request
		return c, v.tooMuch(fmt.Sprintf("call %s of episode %d", name, episode), results.Size(r), "parley export --table messages --max-size MB writes all")
	}
	var names []string
	for _, turn := range t.read.Turns {
		for _, r := range turn.Replies {
			names = append(names, results.CallName(r))
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

// printWhole writes the call with the exact request and everything known about the reply.
func (c *shownCall) printWhole(p *terminal.Page) {
	p.Put(terminal.InkHead, "call "+c.Call)
	p.Line(fmt.Sprintf(" of episode %d: %s of %s (%s)", c.Episode, c.Label, cmp.Or(c.Seat, noSeat), cmp.Or(c.who, "no agent")))
	p.Fact("at", stamp(c.At))
	if c.Copied {
		p.Fact("copied", "from the run that this one was forked from: it cost this one nothing")
	}
	if c.Request != nil {
		c.printRequest(p)
	}
	if c.Act != nil {
		p.Line()
		p.InkedLine(terminal.InkHead, "act")
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

func (c *shownCall) printRequest(p *terminal.Page) {
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
				p.InkedLine(terminal.InkFaint, "  image "+terminal.OneLine(imageText(part.Image)))
			case part.File != nil:
				p.InkedLine(terminal.InkFaint, "  "+terminal.OneLine(part.File.String()))
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
		p.InkedLine(terminal.InkFaint, "  thought")
		p.Quote("    ", t.Text)
	}
}

func printToolCalls(p *terminal.Page, calls []llm.ToolCall) {
	for _, t := range calls {
		p.Put(terminal.InkFaint, "  calls ")
		p.Line(terminal.OneLine(t.Name+" "+t.Arguments), " (", t.ID, ")")
	}
}

func (c *shownCall) printAnswer(p *terminal.Page) {
	r := c.Response
	p.InkedLine(terminal.InkHead, "answer")
	printThoughts(p, r.Thoughts)
	if r.Text != "" {
		p.Quote("  ", r.Text)
	}
	if len(r.JSON) > 0 && string(r.JSON) != r.Text {
		if r.Text != "" {
			p.InkedLine(terminal.InkFaint, "  read as")
		}
		p.Quote("  ", string(r.JSON))
	}
	if r.Refusal != "" {
		p.InkedLine(terminal.InkBad, "  refused: "+terminal.OneLine(r.Refusal))
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
	c.printSpent(p, r.Usage, r.Metadata)
}

func (c *shownCall) printFailure(p *terminal.Page) {
	e := c.Error
	p.InkedLine(terminal.InkBad, "failed: "+strings.ReplaceAll(string(e.Kind), "_", " "))
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
	c.printSpent(p, e.Usage, e.Metadata)
}

func printIDs(p *terminal.Page, answer, request string) {
	if answer != "" {
		p.Fact("id", answer)
	}
	if request != "" {
		p.Fact("request", request)
	}
}

// printSpent writes the tokens, cost and time of the call.
func (c *shownCall) printSpent(p *terminal.Page, u llm.Usage, t llm.Metadata) {
	in := fmt.Sprintf("%s in, %s of them cached", terminal.Number(u.Input), terminal.Number(u.Cached))
	if u.Audio > 0 {
		in += fmt.Sprintf(", %s of them of audio", terminal.Number(u.Audio))
	}
	p.Fact("tokens", fmt.Sprintf("%s; %s out, %s of them thought", in, terminal.Number(u.Output), terminal.Number(u.Reasoning)))
	cost := c.Cost.String()
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
		{t.Parsed != "", "read as JSON: " + t.Parsed},
	} {
		if how.yes {
			tries.WriteString(", " + how.what)
		}
	}
	p.Fact("tries", tries.String())
	p.Fact("time", fmt.Sprintf("%v, first byte after %v, waited %v before", round(t.Latency), round(t.FirstByte), round(t.Waited)))
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// shownStory is an episode as its kind presents it.
type shownStory struct {
	File     string          `json:"file"`
	Episode  int             `json:"episode"`
	Frames   []exhibit.Frame `json:"frames"`   // of all replays
	Exhibits []shownPart     `json:"exhibits"` // in the order of the story
	Texts    []score.Text    `json:"texts,omitempty"`
}

// shownPart is a part of a story, in words and numbers.
type shownPart struct {
	Name    string        `json:"name"`
	Title   string        `json:"title"`
	Caption string        `json:"caption,omitempty"`
	Text    string        `json:"text,omitempty"`
	Table   *report.Table `json:"table,omitempty"`
	frames  []exhibit.Frame
}

// story returns an episode's story part by part, without the pictures.
func (v *showReader) story(ctx context.Context, episode int) (*shownStory, error) {
	t, err := v.readTranscript(ctx, episode)
	if err != nil {
		return nil, err
	}
	story := &shownStory{File: v.file, Episode: t.Number, Frames: []exhibit.Frame{}, Exhibits: []shownPart{}}
	if err := t.read.Mark(v.kind.Of(t.played.Spec)); err != nil {
		v.tell(err.Error())
	}
	exhibits, err := t.read.Story(v.kind.Of(t.played.Spec), t.played)
	if err != nil {
		v.tell(err.Error())
	}
	for _, e := range exhibits {
		b, ok := report.ExhibitBlock(e, &report.Palette{})
		if !ok {
			continue
		}
		shown := shownPart{Name: e.Name, Title: e.Title, Caption: b.Caption, Text: b.Text, Table: b.Table}
		if r, ok := e.Show.(exhibit.Replay); ok {
			shown.frames = r.Frames
		}
		story.Frames = append(story.Frames, shown.frames...)
		story.Exhibits = append(story.Exhibits, shown)
	}
	story.Texts, err = v.texts(ctx, episode)
	return story, err
}

// texts returns what was written about an episode afterwards.
func (v *showReader) texts(ctx context.Context, episode int) ([]score.Text, error) {
	if v.about.Begun == nil {
		return nil, nil
	}
	return score.Texts(ctx, v.file, v.about.Begun.Run, episode)
}

// printTexts writes what was written about the episode afterwards.
func printTexts(p *terminal.Page, texts []score.Text) {
	for _, t := range texts {
		p.Line()
		p.InkedLine(terminal.InkHead, terminal.OneLine("asked afterwards: "+t.Scorer+", "+t.Question))
		p.InkedLine(terminal.InkFaint, terminal.OneLine(t.By()))
		p.Quote("  ", t.Text)
	}
}

// print prints the story.
func (t *shownStory) print(p *terminal.Page) {
	p.Put(terminal.InkHead, fmt.Sprintf("episode %d", t.Episode))
	p.InkedLine(terminal.InkPlain, " of "+t.File)
	for _, e := range t.Exhibits {
		if len(e.frames) == 0 {
			printExhibit(p, e)
		}
		for _, f := range e.frames {
			p.Line()
			p.InkedLine(terminal.InkHead, terminal.OneLine(f.Title))
			for _, l := range f.Lines {
				printFrameLine(p, l)
			}
		}
	}
	printTexts(p, t.Texts)
}

// printExhibit writes a part of a story that is not a replay.
func printExhibit(p *terminal.Page, e shownPart) {
	p.Line()
	p.InkedLine(terminal.InkHead, terminal.OneLine(e.Title))
	if e.Caption != "" {
		p.InkedLine(terminal.InkFaint, terminal.OneLine(e.Caption))
	}
	if e.Text != "" {
		p.Quote("  ", e.Text)
	}
	if e.Table != nil && len(e.Table.Rows) > 0 {
		printTable(p, e.Table)
	}
}

// printFrameLine writes a speaker's words in a frame: the first line after the name, the others below it.
func printFrameLine(p *terminal.Page, l exhibit.FrameLine) {
	who := l.Who
	if l.To != "" {
		who += " to " + l.To
	}
	first, rest, more := strings.Cut(strings.TrimSpace(l.Text), "\n")
	p.Put(terminal.InkName, "  "+terminal.OneLine(who))
	if l.Mark != "" {
		p.InkedLine(terminal.InkBad, "  * "+terminal.OneLine(l.Mark))
		p.Quote("    ", strings.TrimSpace(l.Text))
		return
	}
	if who != "" {
		p.Put(terminal.InkPlain, ": ")
	}
	p.Line(terminal.OneLine(first))
	if more {
		p.Quote("    ", rest)
	}
}
