package viewer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/internal/serve/viewer/library"

	"parley/internal/report"
	"parley/internal/report/page"
	"parley/internal/store/sqlite"
	"parley/internal/view/transcript"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// linesPerPage is how many lines of a transcript a page has.
const linesPerPage = 200

// episodePage is the data of the page of an episode.
type episodePage struct {
	Episode        *report.Episode
	Listed         *sqlite.Listed
	Lineup, Cell   string
	Scores         []world.Score
	Params         string
	Earlier, Later string // the windows before and after
	Before, After  string // the episodes before and after
	LastLine       int
}

// find returns the episode of a request.
func find(r *library.Run, req *http.Request) (*sqlite.Listed, error) {
	n, err := strconv.Atoi(req.PathValue("episode"))
	if err != nil || n < 0 {
		return nil, fmt.Errorf("viewer: episode %q: %w", req.PathValue("episode"), errNotFound)
	}
	list, err := r.Store.List(req.Context(), sqlite.Listing{From: n, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || list[0].Episode != n {
		return nil, fmt.Errorf("viewer: %s has no episode %d: %w", r.Name, n, errNotFound)
	}
	return &list[0], nil
}

func (v *Viewer) episode(req *http.Request) (*screen, error) {
	r, p, err := v.open(req, "Episodes")
	if err != nil {
		return nil, err
	}
	l, err := find(r, req)
	if err != nil {
		return nil, err
	}
	from := 0
	if text := req.URL.Query().Get("from"); text == "end" {
		from = -1
	} else if text != "" {
		if from, err = strconv.Atoi(text); err != nil || from < 0 {
			return nil, fmt.Errorf("viewer: from=%q: %w: want the number of a line, or end", text, errBadRequest)
		}
	}
	e, err := report.ReadEpisode(req.Context(), r.Store, r.Begun, r.Kind, journal.Planned{Episode: l.Episode, Spec: l.Spec, Ended: l.Ended}, l.Attempt, from, linesPerPage)
	if err != nil {
		return nil, err
	}
	at := runPath(r.Name, "episodes", strconv.Itoa(l.Episode))
	e.CallsAt = at + "/"
	d := episodePage{Episode: e, Listed: l, Lineup: lineupText(l.Spec.Lineup), Params: indent(l.Spec.Params), LastLine: min(e.Total, e.From+linesPerPage)}
	if l.Ended != nil {
		d.Scores = l.Ended.Outcome.Scores
	}
	if e.From > 0 {
		d.Earlier = fmt.Sprintf("%s?from=%d", at, max(0, e.From-linesPerPage))
	}
	if d.LastLine < e.Total {
		d.Later = fmt.Sprintf("%s?from=%d", at, d.LastLine)
	}
	if l.Episode > 0 {
		d.Before = runPath(r.Name, "episodes", strconv.Itoa(l.Episode-1))
	}
	o, err := r.Store.Outline(req.Context())
	if err != nil {
		return nil, err
	}
	if l.Episode+1 < o.Episodes {
		d.After = runPath(r.Name, "episodes", strconv.Itoa(l.Episode+1))
	}
	if d.Cell = l.Spec.Cell; strings.ReplaceAll(d.Cell, ", ", " ") == d.Lineup {
		d.Cell = "" // it says the same
	}
	p.Title = fmt.Sprintf("Episode %d of %s", l.Episode, r.Name)
	p.Above = append(p.Above, link{Text: "Episodes", To: runPath(r.Name, "episodes")}, link{Text: strconv.Itoa(l.Episode), To: at})
	p.Style = stylesOf(e.Style, e.Replays)
	p.template, p.Data = "episode", d
	return p, nil
}

// callPage is the data of the page of a call.
type callPage struct {
	Name    string
	Replied *journal.Replied
	Kind    string
	Asked   []message
	Answer  string
	Thought []string
	JSON    string
	Failure *llm.Error
	Usage   llm.Usage
	Meta    llm.Metadata
	At      time.Time
	Raw     string // everything, as JSON
}

// message is a message of a request. New means that it was not in the request before.
type message struct {
	Role, Text string
	New        bool
}

// call is the page of one call: what was asked, what came back, and what it cost.
func (v *Viewer) call(req *http.Request) (*screen, error) {
	r, p, err := v.open(req, "Episodes")
	if err != nil {
		return nil, err
	}
	l, err := find(r, req)
	if err != nil {
		return nil, err
	}
	entries, err := journal.Episode(req.Context(), r.Store, l.Episode)
	if err != nil {
		return nil, err
	}
	name := req.PathValue("call")
	turn, index, _ := strings.Cut(name, ":")
	for _, t := range transcript.Turns(entries, l.Attempt) {
		for _, e := range t.Replies {
			if t.Name() == turn && strconv.Itoa(e.Index) == index {
				at := runPath(r.Name, "episodes", strconv.Itoa(l.Episode))
				p.Title = fmt.Sprintf("Call %s of episode %d of %s", name, l.Episode, r.Name)
				p.Above = append(p.Above, link{Text: "Episodes", To: runPath(r.Name, "episodes")}, link{Text: strconv.Itoa(l.Episode), To: at}, link{Text: name, To: at + "/" + name})
				p.template, p.Data, p.Live = "call", newCallPage(name, e), "" // a reply does not change
				return p, nil
			}
		}
	}
	return nil, fmt.Errorf("viewer: episode %d of %s has no call %q with a reply: %w", l.Episode, r.Name, name, errNotFound)
}

func newCallPage(name string, e *journal.Replied) callPage {
	d := callPage{Name: name, Replied: e, Kind: "bot", Failure: e.Error, At: e.At}
	switch {
	case e.Act != nil:
		d.Kind = "act"
		d.Asked = []message{{Role: e.Act.Name, Text: indent(e.Act.Body), New: true}}
	case e.Request != nil:
		d.Kind = "ask"
		last := -1
		for i, m := range e.Request.Messages {
			if m.Role == llm.RoleAssistant {
				last = i
			}
		}
		for i := range e.Request.Messages {
			m := &e.Request.Messages[i]
			d.Asked = append(d.Asked, message{Role: string(m.Role), Text: transcript.MessageText(m), New: i > last})
		}
	}
	if e.Response != nil {
		d.Answer, d.Usage, d.Meta = transcript.AnswerText(e.Response), e.Response.Usage, e.Response.Metadata
		for _, t := range e.Response.Thoughts {
			d.Thought = append(d.Thought, t.Text)
		}
		if string(e.Response.JSON) != e.Response.Text {
			d.JSON = indent(e.Response.JSON)
		}
	}
	if e.Error != nil {
		d.Usage, d.Meta = e.Error.Usage, e.Error.Metadata
	}
	if b, err := json.MarshalIndent(map[string]any{"request": e.Request, "act": e.Act, "response": e.Response, "error": e.Error}, "", "  "); err == nil {
		d.Raw = string(b)
	}
	return d
}

// indent returns JSON for people, or the text as it is.
func indent(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// ScoreText formats a score.
func (episodePage) ScoreText(s world.Score) string { return page.Real(s.Value).Text }
