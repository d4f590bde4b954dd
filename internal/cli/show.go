package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/store/sqlite"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// showCmd shows a run file: its episodes, a transcript, or a call.
type showCmd struct {
	File    string `arg:"" placeholder:"FILE" help:"The run file. It may be played meanwhile."`
	Episode *int   `placeholder:"N" help:"Show what was said in this episode."`
	Call    string `placeholder:"TURN:INDEX" help:"Show this call of the episode whole, by the name the episode shows it with: 3:0, or 4.2/0:1 in a strand."`
	From    int    `placeholder:"N" help:"The first episode to list. Default: 0."`
	Limit   int    `default:"50" placeholder:"N" help:"Most episodes to list; 0 for all. Default: ${default}."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// Run shows.
func (c *showCmd) Run(ctx context.Context, s *State) (err error) {
	switch {
	case c.Call != "" && c.Episode == nil:
		return usage("--call is a call of an episode: say which with --episode")
	case c.From < 0 || c.Limit < 0:
		return usage("--from and --limit must not be negative")
	}
	store, err := sqlite.OpenRead(c.File)
	if err != nil {
		return asUsage(err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	head, err := store.Head(ctx)
	if err != nil {
		return playError(err)
	}
	if head.Begun == nil {
		return usage("%s holds no run yet", c.File)
	}
	v := &shower{store: store, head: head, file: c.File}
	switch {
	case c.Call != "":
		return c.call(ctx, s, v)
	case c.Episode != nil:
		return c.transcript(ctx, s, v)
	default:
		return c.list(ctx, s, v)
	}
}

// show prints v as JSON, or by print.
func (c *showCmd) show(s *State, v any, print func(*page)) error {
	if c.JSON {
		b, err := marshal(v)
		if err != nil {
			return fmt.Errorf("show: %w", err)
		}
		_, err = fmt.Fprintln(s.Stdout, string(b))
		return err
	}
	p := newPage(s)
	print(p)
	return p.flush()
}

func (c *showCmd) list(ctx context.Context, s *State, v *shower) error {
	run, err := v.run(ctx, c.From, c.Limit)
	if err != nil {
		return playError(err)
	}
	if n := run.Episodes.Total; c.From > 0 && c.From >= n {
		return usage("--from %d: %s has %s episodes, from 0 on", c.From, c.File, number(n))
	}
	return c.show(s, run, run.print)
}

// shower reads what is shown of a run.
type shower struct {
	store *sqlite.Store
	head  *journal.Head
	file  string
}

// shownRun is a run and some of its episodes.
type shownRun struct {
	File        string          `json:"file"`
	Run         string          `json:"run"`
	Tool        string          `json:"tool"`
	Kind        string          `json:"kind"`
	KindVersion int             `json:"kind_version"`
	Seed        uint64          `json:"seed"`
	Begun       time.Time       `json:"begun"`
	Closed      time.Time       `json:"closed,omitzero"` // the last sitting, if it was
	Fork        *journal.Origin `json:"fork,omitempty"`
	State       string          `json:"state"`
	Reason      string          `json:"reason,omitempty"`
	Agents      []world.Agent   `json:"agents"`
	Episodes    struct {
		Total   int `json:"total"`
		Ended   int `json:"ended"`
		Failed  int `json:"failed"`
		Playing int `json:"playing"`
		Waiting int `json:"waiting"`
	} `json:"episodes"`
	Calls int            `json:"calls"`
	Cost  llm.Money      `json:"cost_usd"`
	From  int            `json:"from"`
	List  []shownEpisode `json:"list"`
}

// What the state of a run is besides a journal.State.
const (
	stateNew  = "new"  // nobody has played it
	stateOpen = "open" // somebody plays it, or was cut off
)

func (v *shower) run(ctx context.Context, from, limit int) (*shownRun, error) {
	h, b := v.head, v.head.Begun
	r := &shownRun{
		File: v.file, Run: b.Run, Tool: b.Tool, Kind: b.Kind, KindVersion: b.KindVersion, Seed: b.Seed, Begun: b.At.UTC(),
		Closed: h.Last.At, Fork: b.Fork, State: string(h.Last.State), Reason: h.Last.Reason, Agents: b.Agents,
		Calls: h.Calls, Cost: h.Spent, From: from, List: []shownEpisode{},
	}
	switch {
	case h.Cut:
		r.State = stateOpen
	case r.State == "":
		r.State = stateNew
	}
	r.Episodes.Playing = len(h.Playing)
	for _, e := range h.Ended {
		if e.Outcome.Failed != "" {
			r.Episodes.Failed++
		}
	}
	r.Episodes.Ended = len(h.Ended) - r.Episodes.Failed
	for _, st := range h.Stages {
		r.Episodes.Total += len(st.Specs)
		for i := range st.Specs {
			if n := st.First + i; n >= from && (limit == 0 || n-from < limit) {
				e, err := v.episode(ctx, n, st.Specs[i])
				if err != nil {
					return nil, err
				}
				r.List = append(r.List, e)
			}
		}
	}
	r.Episodes.Waiting = r.Episodes.Total - len(h.Ended) - r.Episodes.Playing
	return r, nil
}

// shownEpisode is a line of the list.
type shownEpisode struct {
	Episode int               `json:"episode"`
	Attempt int               `json:"attempt,omitempty"`
	Cell    string            `json:"cell,omitempty"`
	Lineup  map[string]string `json:"lineup"`
	Deal    int               `json:"deal"`
	State   string            `json:"state"` // waiting, playing, ended, failed
	Failed  string            `json:"failed,omitempty"`
	Scores  []shownScore      `json:"scores,omitempty"`
	Calls   int               `json:"calls"`
	Cost    llm.Money         `json:"cost_usd"`

	entries []journal.Entry
}

// shownScore is a score whose value may be one that JSON has no number for.
type shownScore struct {
	Seat  string `json:"seat,omitempty"`
	Name  string `json:"name"`
	Value any    `json:"value"`
}

func (v *shower) episode(ctx context.Context, n int, spec world.Spec) (shownEpisode, error) {
	e := shownEpisode{Episode: n, Cell: spec.Cell, Lineup: spec.Lineup, Deal: spec.Deal, State: "waiting", Attempt: v.head.Progress(n).Attempt}
	if _, playing := v.head.Playing[n]; playing {
		e.State = "playing"
	}
	if end, ok := v.head.Ended[n]; ok {
		e.State, e.Failed, e.Scores = "ended", end.Outcome.Failed, shownScores(end.Outcome.Scores)
		if e.Failed != "" {
			e.State = "failed"
		}
	}
	entries, err := journal.Episode(ctx, v.store, n)
	if err != nil {
		return e, err
	}
	e.entries = entries
	for _, entry := range entries {
		if r, ok := entry.(*journal.Replied); ok {
			e.Calls++
			e.Cost += r.Cost()
		}
	}
	return e, nil
}

func shownScores(scores []world.Score) []shownScore {
	var out []shownScore
	for _, s := range scores {
		v := shownScore{Seat: s.Seat, Name: s.Name, Value: s.Value}
		if s.Value-s.Value != 0 { // NaN, and what is infinite
			v.Value = strconv.FormatFloat(s.Value, 'g', -1, 64)
		}
		out = append(out, v)
	}
	return out
}

func (r *shownRun) print(p *page) {
	p.put(inkHead, "run "+r.Run)
	p.line(fmt.Sprintf(": %s version %d, seed %d", r.Kind, r.KindVersion, r.Seed))
	p.fact("file", r.File)
	p.fact("begun", stamp(r.Begun)+" by "+r.Tool)
	if f := r.Fork; f != nil {
		p.fact("forked", fmt.Sprintf("from %s, episode %d, turn %d", f.File, f.Episode, f.Turn))
	}
	p.fact("state", r.state())
	for _, a := range r.Agents {
		p.fact("agent", agentLine(a))
	}
	e := r.Episodes
	p.fact("episodes", fmt.Sprintf("%s: %s ended, %s failed, %s playing, %s waiting", number(e.Total), number(e.Ended), number(e.Failed), number(e.Playing), number(e.Waiting)))
	p.fact("calls", number(r.Calls)+", "+r.Cost.String())
	if len(r.List) > 0 {
		p.line()
		p.table(r.rows())
		r.more(p)
	}
}

// more says how to see what is not listed.
func (r *shownRun) more(p *page) {
	next := r.List[len(r.List)-1].Episode + 1
	if r.From > 0 || next < r.Episodes.Total {
		p.put(inkFaint, fmt.Sprintf("\n%s to %s of %s episodes", number(r.From), number(next-1), number(r.Episodes.Total)))
		if next < r.Episodes.Total {
			p.put(inkFaint, fmt.Sprintf("; --from %d shows more", next))
		}
		p.line()
	}
}

func (r *shownRun) state() string {
	switch text := r.State; {
	case text == stateNew:
		return "new: nobody has played it yet"
	case text == stateOpen:
		return "open: it is being played, or was cut off"
	case r.Reason != "":
		return text + " " + stamp(r.Closed) + ": " + r.Reason
	default:
		return text + " " + stamp(r.Closed)
	}
}

// rows are the table of episodes. Cells that only repeat the lineup are left out.
func (r *shownRun) rows() [][]cell {
	cells := slices.ContainsFunc(r.List, func(e shownEpisode) bool { return e.Cell != "" && e.Cell != lineupText(e.Lineup) })
	head := []cell{{text: "EPISODE"}, {text: "STATE"}, {text: "CALLS"}, {text: "COST"}}
	if cells {
		head = append(head, cell{text: "CELL"})
	}
	rows := [][]cell{append(head, cell{text: "LINEUP"}, cell{text: "SCORES"})}
	for _, e := range r.List {
		row := []cell{{text: strconv.Itoa(e.Episode)}, {stateInk(e.State), e.State}, {text: number(e.Calls)}, {text: e.Cost.String()}}
		if cells {
			row = append(row, cell{text: orDash(e.Cell, e.Cell == "")})
		}
		row = append(row, cell{inkName, lineupText(e.Lineup)})
		if e.Failed != "" {
			row = append(row, cell{inkBad, oneLine(e.Failed)})
		} else {
			row = append(row, cell{text: orDash(scoresText(e.Scores), len(e.Scores) == 0)})
		}
		rows = append(rows, row)
	}
	return rows
}

func stateInk(state string) ink {
	switch state {
	case "failed":
		return inkBad
	case "ended":
		return inkGood
	default:
		return inkFaint
	}
}

func lineupText(lineup map[string]string) string {
	parts := make([]string, 0, len(lineup))
	for _, seat := range slices.Sorted(maps.Keys(lineup)) {
		parts = append(parts, seat+"="+lineup[seat])
	}
	return strings.Join(parts, " ")
}

// scoresText is "first: points 3, revealed 0; second: …".
func scoresText(scores []shownScore) string {
	var b strings.Builder
	for i, s := range scores {
		switch {
		case i > 0 && scores[i-1].Seat == s.Seat:
			b.WriteString(", ")
		case i > 0:
			b.WriteString("; ")
		}
		if s.Seat != "" && (i == 0 || scores[i-1].Seat != s.Seat) {
			b.WriteString(s.Seat + ": ")
		}
		fmt.Fprintf(&b, "%s %v", s.Name, s.Value)
	}
	return oneLine(b.String())
}

// agentLine is an agent in a few words: its system prompt is left to --json.
func agentLine(a world.Agent) string {
	text := a.Name + ": " + a.Model
	if a.Bot != "" {
		text = a.Name + ": the bot " + a.Bot
	}
	if a.Temperature != nil {
		text += fmt.Sprintf(", temperature %v", *a.Temperature)
	}
	if a.Effort != "" {
		text += ", effort " + string(a.Effort)
	}
	if a.System != "" {
		text += ", with a system prompt"
	}
	return text
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
