package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/runfile"
	"parley/internal/run/runfile/runfiletest"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// hostileText is text that must not reach a terminal: escape codes, a title, a carriage return, reversed text,
// other line ends, and invalid UTF-8.
const hostileText = "hi\x1b[5m \x1b]0;owned\x07 gone\rover \u202eexe.gnp\u2066 \u2028\u200f \u009b5m \x7f \xff end"

func noon(minutes int) time.Time { return time.Date(2026, 11, 15, 12, minutes, 0, 0, time.UTC) }

// cliSample returns a run with one of everything: strands, bots, acts, failures, refusals, and episodes that ended,
// failed, are in progress, and wait.
func cliSample() []journal.Entry {
	temperature := 0.5
	agents := []world.Agent{{Name: "bold", Model: "lab/large", Temperature: &temperature, System: "Be bold."}, {Name: "polly", Bot: "parrot"}}
	spec := func(deal int, cell string) world.Spec {
		return world.Spec{Kind: "crowd", Params: json.RawMessage(`{"turns":2}`), Lineup: map[string]string{"a": "bold", "b": "polly"}, Deal: deal, Cell: cell}
	}
	at := func(episode int, strand string, turn int) journal.Turn {
		return journal.Turn{Episode: episode, Strand: strand, Turn: turn}
	}
	ask := func(t journal.Turn, text string) *journal.Replied {
		r := &journal.Replied{Turn: t, Seat: "a", Label: "word", Agent: "bold", At: noon(2), Request: &llm.Request{
			Model: "lab/large", Temperature: &temperature, MaxTokens: 99, Sample: 7, Fallbacks: []string{"lab/small"},
			Messages: []llm.Message{llm.System("Be bold."), llm.User("Go on:\nwhat now?")},
		}}
		r.Response = &llm.Response{
			Text: text, Finish: llm.FinishStop, Provider: "lab", Model: "large-1", ID: "r1", RequestID: "q1",
			Usage:    llm.Usage{Input: 1200, Cached: 1000, Output: 30, Reasoning: 10},
			Metadata: llm.Metadata{Attempts: 2, Cost: 12_000_000, Latency: 1500 * time.Millisecond, FirstByte: 200 * time.Millisecond, Waited: time.Second},
		}
		return r
	}
	failed := ask(at(0, "", 2), "")
	failed.Index, failed.Response = 1, nil
	failed.Error = &llm.Error{Kind: llm.KindRateLimited, Status: 429, Code: "slow_down", Provider: "lab", Model: "large", Message: "Please\nwait.", Metadata: llm.Metadata{Attempts: 5}}
	refused := ask(at(0, "", 2), "")
	refused.Index, refused.Response.Refusal, refused.Response.Finish = 2, "I would rather not.", llm.FinishRefused
	act := &journal.Replied{Turn: at(0, "", 3), Seat: "a", Label: "step", Agent: "bold", At: noon(3), Act: &world.Act{Name: "step", Body: json.RawMessage(`{"go":1}`)}, Response: &llm.Response{JSON: json.RawMessage(`{"reward":1}`)}}
	tools := ask(at(0, "", 2), "")
	tools.Response.ToolCalls = []llm.ToolCall{{ID: "c1", Name: "look", Arguments: `{"at":1}`}}
	tools.Response.Thoughts = []llm.Thought{{Text: "Let me see."}}
	bot := &journal.Replied{Turn: at(0, "1.0/", 0), Seat: "b", Label: "word", Agent: "polly", At: noon(2), Response: &llm.Response{Text: "squawk"}, Copied: true}
	return []journal.Entry{
		&journal.Begun{Version: 1, Run: "00ff", Tool: "parley test", At: noon(0), Kind: "crowd", KindVersion: 1, Seed: 7, Agents: agents, Plan: json.RawMessage(`{}`), Fork: &journal.Origin{File: "old.parley", Run: "00aa", Episode: 4, Turn: 2}},
		&journal.Opened{At: noon(1)},
		&journal.Staged{Specs: world.List(spec(0, "long: a=bold"), spec(1, ""), spec(2, ""), spec(3, ""))},
		&journal.Turned{Turn: at(0, "", 0), Calls: 1, Notes: []world.Note{{Kind: "board", Data: json.RawMessage(`{"at":[1,2]}`)}}},
		ask(at(0, "", 0), "First line.\r\n\nturn 9\noutcome\n"),
		&journal.Turned{Turn: at(0, "", 1), Notes: []world.Note{{Kind: "said", Seat: "a", Data: json.RawMessage(`{"n":1,"text":"First line.\r\n\nturn 9\noutcome"}`)}}},
		&journal.Turned{Turn: at(0, "1.1/", 0), Calls: 1}, // the strands were played side by side
		&journal.Turned{Turn: at(0, "1.0/", 0), Calls: 1},
		ask(at(0, "1.1/", 0), "in the second strand"),
		bot,
		&journal.Turned{Turn: at(0, "1.0/", 1), Notes: []world.Note{{Kind: "done", Seat: "b", Data: json.RawMessage(`true`)}}},
		&journal.Turned{Turn: at(0, "", 2), Calls: 3},
		refused, failed, tools, // as they arrived
		&journal.Turned{Turn: at(0, "", 3), Calls: 1}, act,
		&journal.Ended{At: noon(4), Outcome: world.Outcome{
			Scores: []world.Score{{Seat: "a", Name: "points", Value: 3}, {Seat: "a", Name: "share", Value: 0.25}, {Seat: "b", Name: "points", Value: math.Inf(1)}, {Name: "length", Value: 5}},
			Data:   json.RawMessage(`{"winner":"a"}`),
		}},
		&journal.Ended{Episode: 1, At: noon(4), Outcome: world.Outcome{Failed: "panic: nil map", Data: json.RawMessage(`null`)}, Stack: "goroutine 1\n\tplay.go:7"},
		&journal.Turned{Turn: at(2, "", 0), Calls: 2},
		ask(at(2, "", 0), "half of it"),
		&journal.Closed{At: noon(5), State: journal.Stopped, Reason: journal.Reason{Kind: journal.ByBudget, Detail: "$1.00 is spent"}},
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := runfiletest.File(t, cliSample()...)
	for name, args := range map[string][]string{
		"show-run":          nil,
		"show-run-page":     {"--from", "1", "--limit", "2"},
		"show-episode":      {"--episode", "0"},
		"show-panic":        {"--episode", "1"},
		"show-half":         {"--episode", "2"},
		"show-waiting":      {"--episode", "3"},
		"show-call":         {"--episode", "0", "--call", "1.1/0"},
		"show-call-tools":   {"--episode", "0", "--call", "2:0"},
		"show-call-failed":  {"--episode", "0", "--call", "2:1"},
		"show-call-act":     {"--episode", "0", "--call", "3:0"},
		"show-run-json":     {"--json"},
		"show-episode-json": {"--json", "--episode", "0"},
		"show-call-json":    {"--json", "--episode", "0", "--call", "2:1"},
	} {
		got := parley(t, State{}, append([]string{"show", file}, args...)...).want(t, exit.OK)
		golden(t, name, strings.ReplaceAll(got.stdout, file, "run.parley"))
		if got.stderr != "" {
			t.Errorf("%s: %s", name, got.stderr)
		}
	}
}

// TestShowFailedActs: a failed act is not among the failed calls, but in the column of what failed.
func TestShowFailedActs(t *testing.T) {
	t.Parallel()
	entries := cliSample()
	for _, e := range entries {
		if r, ok := e.(*journal.Replied); ok && (r.Act != nil || r.Request == nil) {
			r.Response, r.Error = nil, &llm.Error{Kind: llm.KindServer}
		}
	}
	file := runfiletest.File(t, entries...)
	if got := parley(t, State{}, "show", file, "--json").want(t, exit.OK).stdout; !strings.Contains(got, `"failed_calls":1,"failed_acts":1,"failed_bots":1,`) {
		t.Errorf("show --json: %s", got)
	}
	if got := parley(t, State{}, "show", file, "--episode", "0").want(t, exit.OK).stdout; !strings.Contains(got, "3 of them") {
		t.Errorf("show --episode: %s", got)
	}
}

// TestOneState checks that show, wait and report say the same of a run, whatever became of it, and that the colour says how good it is.
func TestOneState(t *testing.T) {
	t.Parallel()
	sequential(t)
	for _, c := range []struct {
		name, failed string // which episodes fail: f, or . for one that ends
		last         journal.Closed
		want, ink    string
		code         int
	}{
		{"complete", "..", journal.Closed{State: journal.Complete}, "complete", "32", exit.OK},
		{"some failed", ".f", journal.Closed{State: journal.Complete}, "some failed: it is complete, and 1 of 2 episodes failed", "33", exit.Failed},
		{"all failed", "ff", journal.Closed{State: journal.Complete}, "all failed: it is complete, and all 2 episodes failed", "31", exit.Failed},
		{"stopped", "..", journal.Closed{State: journal.Stopped, Reason: journal.Reason{Kind: journal.ByBudget, Detail: "$1.00 is spent"}}, "stopped: budget: $1.00 is spent", "33", exit.Budget},
		{"error", "..", journal.Closed{State: journal.Failed, Reason: journal.Reason{Kind: journal.ByError, Detail: "episode 1 has diverged"}}, "failed: episode 1 has diverged", "31", exit.Failed},
		{"killed", "..", journal.Closed{}, "cut off: the process that played it was killed", "31", exit.Failed},
	} {
		entries := []journal.Entry{&journal.Begun{Version: journal.Version, Run: "r"}, &journal.Opened{}, &journal.Staged{Specs: world.Repeat(world.Spec{}, len(c.failed))}}
		for i, f := range c.failed {
			end := &journal.Ended{Episode: i}
			if f == 'f' {
				end.Outcome.Failed = "no answer"
			}
			entries = append(entries, end)
		}
		if c.last.State != "" {
			entries = append(entries, &c.last)
		}
		file := runfiletest.File(t, entries...)
		state, why, _ := strings.Cut(c.want, ": ")
		for _, args := range [][]string{{"show", file}, {"show", file, "--json"}, {"ctl", file, "wait"}, {"ctl", file, "wait", "--json"}} {
			got := parley(t, State{}, args...)
			if !strings.Contains(got.stdout, state) || !strings.Contains(got.stdout, why) || args[0] == "ctl" && got.code != c.code {
				t.Errorf("%s: %v: code %d, want %d and %s: %s", c.name, args, got.code, c.code, c.want, got.stdout)
			}
		}
		if got := parley(t, State{}, "report", file).stdout; !strings.Contains(got, state) {
			t.Errorf("%s: report does not say %s: %s", c.name, state, got)
		}
		if got := parley(t, atTerminal(nil), "show", file).stdout; !strings.Contains(got, "\x1b["+c.ink+"m"+state) {
			t.Errorf("%s: the colour is not %s: %q", c.name, c.ink, got)
		}
	}
}

var ourColours = regexp.MustCompile("\x1b\\[(0|1|2|31|32|33|36)m")

// atTerminal returns a state with a very wide terminal.
func atTerminal(env map[string]string) State {
	return State{
		Terminal: func(any) int { return 4000 },
		Env:      func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	}
}

// TestShowColors checks that a terminal gets colors and nothing else, and only if it wants them.
func TestShowColors(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := runfiletest.File(t, cliSample()...)
	for _, args := range [][]string{{"show", file}, {"show", file, "--episode", "0"}, {"show", file, "--episode", "0", "--call", "2:1"}} {
		plain := parley(t, State{}, args...).stdout
		coloured := parley(t, atTerminal(nil), args...).stdout
		if !strings.Contains(coloured, "\x1b[1m") || ourColours.ReplaceAllString(coloured, "") != plain {
			t.Errorf("%v: %q", args, coloured)
		}
		for _, env := range []map[string]string{{"NO_COLOR": "1"}, {"TERM": "dumb"}} {
			if got := parley(t, atTerminal(env), args...).stdout; got != plain {
				t.Errorf("%v: %v: %q", args, env, got)
			}
		}
		if got := parley(t, atTerminal(map[string]string{"NO_COLOR": ""}), args...).stdout; got != coloured {
			t.Errorf("%v: an empty NO_COLOR counts", args)
		}
	}
}

// TestShowFits checks that every line fits a terminal, that a narrow one loses columns and no scores, and that a pipe gets everything.
func TestShowFits(t *testing.T) {
	t.Parallel()
	file := runfiletest.File(t, cliSample()...)
	whole := parley(t, State{}, "show", file).stdout
	_, table, _ := strings.Cut(whole, "EPISODE")
	const scores = "a: points 3, share 0.25; b: points +Inf; length 5"
	if !strings.Contains(table, scores) || !strings.Contains(whole, "\n      0  ended           5     1       1  $0.048  long: a=bold  a=bold b=polly  "+scores+"\n") {
		t.Errorf("a pipe gets %s", whole)
	}
	for width, row := range map[int]string{
		60:  "      0  a=bold b=polly  a: points 3, share 0.25; b: points",
		80:  "      0  ended       a=bold b=polly  a: points 3, share 0.25; b: points +Inf;",
		129: "      0  ended           5     1       1  $0.048  long: a=bold  a=bold b=polly  a: points 3",
	} {
		s := atTerminal(map[string]string{"TERM": "dumb"})
		s.Terminal = func(any) int { return width }
		got := parley(t, s, "show", file).stdout
		_, below, _ := strings.Cut(got, "\n  begun") // above it, the path of the file stays whole
		for line := range strings.Lines("  begun" + below) {
			if len([]rune(strings.TrimSuffix(line, "\n"))) > width {
				t.Errorf("%d columns: %s", width, line)
			}
		}
		_, table, _ := strings.Cut(got, "\nEPISODE")
		words := strings.Join(strings.Fields(table), " ")
		if !strings.Contains(table, row) || !strings.Contains(words, scores) {
			t.Errorf("%d columns: not %q, or not all scores:\n%s", width, row, got)
		}
		if left := strings.Contains(table, "(left out: cell, cost, "); left != (width < 129) {
			t.Errorf("%d columns:\n%s", width, got)
		}
	}
}

// hostileRun has hostile text wherever text from outside can be.
func hostileRun() []journal.Entry {
	x := hostileText
	raw, _ := json.Marshal(x)
	turn := journal.Turn{}
	request := &llm.Request{Model: x, Stop: []string{x}, Fallbacks: []string{x}, Messages: []llm.Message{
		llm.User(x), {Role: llm.RoleAssistant, Thoughts: []llm.Thought{{Text: x}}, ToolCalls: []llm.ToolCall{{ID: x, Name: x, Arguments: x}}},
		llm.ToolResult(x, x), {Role: llm.RoleUser, Parts: []llm.Part{{Image: &llm.Image{URL: x}}, {File: &llm.File{Name: x, URL: "https://" + x, MediaType: x}}, {File: &llm.File{MediaType: "audio/" + x, Data: []byte(x)}}, {Text: x}}},
	}}
	answer := &llm.Response{
		Text: x, Refusal: x, Thoughts: []llm.Thought{{Text: x}}, ToolCalls: []llm.ToolCall{{ID: x, Name: x, Arguments: x}}, Finish: llm.Finish(x),
		JSON: raw, Model: x, Provider: x, ID: x, RequestID: x, Dropped: []string{x}, Metadata: llm.Metadata{Parsed: x},
	}
	failure := &llm.Error{Kind: llm.Kind(x), Message: x, Code: x, Status: 500, Provider: x, Model: x, RequestID: x}
	replied := func(index int) *journal.Replied {
		return &journal.Replied{Turn: turn, Index: index, Seat: x, Label: x, Agent: x}
	}
	asked, failed, acted := replied(0), replied(1), replied(2)
	asked.Request, asked.Response = request, answer
	failed.Request, failed.Error = request, failure
	acted.Act, acted.Response = &world.Act{Name: x, Body: raw}, &llm.Response{JSON: raw}
	return []journal.Entry{
		&journal.Begun{Version: 1, Run: x, Tool: x, Kind: x, Agents: []world.Agent{{Name: x, Model: x}}, Plan: json.RawMessage(`{}`), Fork: &journal.Origin{File: x}},
		&journal.Opened{}, &journal.Staged{Specs: world.List(world.Spec{Kind: x, Lineup: map[string]string{x: x}, Cell: x}, world.Spec{Kind: x, Cell: x})},
		&journal.Turned{Turn: turn, Calls: 3, Notes: []world.Note{{Kind: x, Seat: x, Data: raw}}}, asked, failed, acted,
		&journal.Ended{Outcome: world.Outcome{Failed: x, Data: json.RawMessage(raw)}, Stack: x},
		&journal.Ended{Episode: 1, Outcome: world.Outcome{Scores: []world.Score{{Seat: x, Name: x, Value: 1}}, Data: json.RawMessage(raw)}},
		&journal.Closed{State: journal.Stopped, Reason: journal.Reason{Kind: journal.ByCall, Detail: x}},
	}
}

// TestShowHostile checks that the output is harmless on a terminal, and in a pipe as well, since head and less
// pass it on.
func TestShowHostile(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := runfiletest.File(t, hostileRun()...)
	for _, args := range [][]string{
		{}, {"--failed"}, {"--episode", "0"}, {"--episode", "1"}, {"--episode", "0", "--call", "0:0"}, {"--episode", "0", "--call", "0:1"}, {"--episode", "0", "--call", "0:2"},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			args := append(append([]string{"show", file}, args...), more...)
			for where, s := range map[string]State{"terminal": atTerminal(nil), "dumb terminal": atTerminal(map[string]string{"TERM": "dumb"}), "pipe": {}} {
				got := parley(t, s, args...).want(t, exit.OK).stdout
				if rest := ourColours.ReplaceAllString(got, ""); terminal.Safe(rest) != rest || !strings.Contains(rest, `\u001b]0;owned`) {
					t.Errorf("%v: a %s gets %q", args, where, rest)
				}
			}
		}
	}
	// JSON still has exactly the original text.
	var call struct{ Response struct{ Text string } }
	got := parley(t, State{}, "show", file, "--episode", "0", "--call", "0:0", "--json").want(t, exit.OK).stdout
	if err := json.Unmarshal([]byte(got), &call); err != nil || call.Response.Text != strings.ToValidUTF8(hostileText, "\ufffd") {
		t.Errorf("%v: %q", err, call.Response.Text)
	}
}

// TestShowFailureIsNoDialogue checks that the text of a failed call never looks like words of a model.
func TestShowFailureIsNoDialogue(t *testing.T) {
	t.Parallel()
	file := runfiletest.File(t, cliSample()...)
	got := parley(t, State{}, "show", file, "--episode", "0").want(t, exit.OK).stdout
	for line := range strings.Lines(got) {
		bar := strings.HasPrefix(strings.TrimSpace(line), "|")
		if strings.Contains(line, "wait.") && (bar || !strings.Contains(line, "failed: ")) {
			t.Errorf("a failure as words: %q", line)
		}
		if strings.Contains(line, "turn 9") && !bar && !strings.Contains(line, "note") {
			t.Errorf("words as a line of the page: %q", line)
		}
	}
}

// TestShowWhilePlayed reads a file that is open for writing.
func TestShowWhilePlayed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	s, err := runfile.Open(t.Context(), file, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	parley(t, State{}, "show", file).want(t, exit.Misuse).wantErr(t, "holds no run yet")
	entries := cliSample()
	for i, e := range entries[:len(entries)-1] {
		if err := s.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		got := parley(t, State{}, "show", file).want(t, exit.OK)
		if want := map[bool]string{true: "new: not played yet", false: "playing: a process plays it"}[i == 0]; !strings.Contains(got.stdout, want) {
			t.Errorf("after %d entries: %s", i+1, got.stdout)
		}
		if i > 2 {
			parley(t, State{}, "show", file, "--episode", "0").want(t, exit.OK)
		}
	}
}

func TestShowBadInput(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := runfiletest.File(t, cliSample()...)
	begun := runfiletest.File(t, cliSample()[0])
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "<file>"},
		{[]string{"nowhere.parley"}, "there is no such run file"},
		{[]string{t.TempDir()}, "is a folder"},
		{[]string{write(t, "notes.txt", "not a run, only some words")}, "not a run file"},
		{[]string{file, "--episode", "4"}, "has no episode 4: it has 0 to 3"},
		{[]string{file, "--episode=-1"}, "has no episode -1"},
		{[]string{begun, "--episode", "0"}, "has no episodes yet"},
		{[]string{file, "--from", "4"}, "has 4 episodes"},
		{[]string{file, "--limit=-1"}, "must not be negative"},
		{[]string{file, "--call", "0:0"}, "--call needs --episode"},
		{[]string{file, "--episode", "0", "--call", "a:b"}, "want TURN:INDEX"},
		{[]string{file, "--episode", "0", "--call", "9:0"}, "it has 0:0, 1.0/0:0, 1.1/0:0, 2:0, 2:1, 2:2, 3:0"},
		{[]string{file, "--episode", "2", "--call", "0:1"}, "no such call with a reply; it has 0:0"},
		{[]string{file, "--episode", "3", "--call", "0:0"}, "has no calls yet"},
	} {
		got := parley(t, State{}, append([]string{"show"}, c.args...)...).want(t, exit.Misuse).wantErr(t, c.want)
		if got.stdout != "" {
			t.Errorf("%v: stdout %q", c.args, got.stdout)
		}
	}
}

// crowds returns a run of n episodes in two cells; every seventh failed.
func crowds(n int) []journal.Entry {
	specs := make([]world.Spec, n)
	for i := range specs {
		specs[i] = world.Spec{Kind: "k", Lineup: map[string]string{"a": "x"}, Deal: i, Cell: []string{"short: a=x", "long: a=x"}[i%2]}
	}
	entries := []journal.Entry{&journal.Begun{Version: 1, Run: "m", Kind: "k", Plan: json.RawMessage(`{}`)}, &journal.Opened{}, &journal.Staged{Specs: world.List(specs...)}}
	for i := range n {
		e := &journal.Ended{Episode: i, Outcome: world.Outcome{Scores: []world.Score{{Name: "n", Value: float64(i)}}}}
		if i%7 == 0 {
			e.Outcome = world.Outcome{Failed: "bad luck"}
		}
		entries = append(entries, &journal.Turned{Turn: journal.Turn{Episode: i}}, e)
	}
	return entries
}

// listedBy returns the episodes that show lists.
func listedBy(t *testing.T, args ...string) string {
	t.Helper()
	got := parley(t, State{}, append(append([]string{"show"}, args...), "--json")...).want(t, exit.OK)
	var run struct{ List []struct{ Episode int } }
	if err := json.Unmarshal([]byte(got.stdout), &run); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range run.List {
		out = append(out, fmt.Sprint(e.Episode))
	}
	return strings.Join(out, " ")
}

func TestShowChooses(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := runfiletest.File(t, crowds(60)...)
	for _, c := range []struct{ args, want string }{
		{"--limit 3", "0 1 2"},
		{"--from 57", "57 58 59"},
		{"--failed", "0 7 14 21 28 35 42 49 56"},
		{"--failed --limit 2", "0 7"},
		{"--failed --from 8 --limit 2", "14 21"},
		{"--cell long --limit 3", "1 3 5"},
		{"--cell long --failed", "7 21 35 49"},
		{"--cell nowhere", ""},
	} {
		if got := listedBy(t, append([]string{file}, strings.Fields(c.args)...)...); got != c.want {
			t.Errorf("%s: %s, want %s", c.args, got, c.want)
		}
	}
	for args, want := range map[string]string{
		"":                                 "\n0 to 49 of 60 episodes; --from 50 shows more\n",
		"--from 50":                        "\n50 to 59 of 60 episodes\n",
		"--failed --limit 2":               "\n2 of 60 episodes; --from 8 shows more\n",
		"--failed --cell long":             "\n4 of 60 episodes\n",
		"--cell nowhere --from 3 --failed": "\nno episode from number 3 on matches the filter\n",
	} {
		if got := parley(t, State{}, append([]string{"show", file}, strings.Fields(args)...)...).want(t, exit.OK).stdout; !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s", args, got)
		}
	}
	if got := parley(t, State{}, "show", file, "--limit", "0").stdout; strings.Contains(got, "shows more") || !strings.Contains(got, "\n     59  ended ") {
		t.Error(got)
	}
}

func TestShowChoosesInEpisode(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := runfiletest.File(t, cliSample()...)
	for name, args := range map[string][]string{
		"show-episode-failed":      {"--failed"},
		"show-episode-seat":        {"--seat", "b"},
		"show-episode-seat-failed": {"--seat", "b", "--failed"},
	} {
		got := parley(t, State{}, append([]string{"show", file, "--episode", "0"}, args...)...).want(t, exit.OK)
		golden(t, name, strings.ReplaceAll(got.stdout, file, "run.parley"))
	}
	for _, c := range []struct {
		args string
		want string
	}{
		{"--seat a", "--seat needs --episode"},
		{"--episode 0 --seat z", `--seat "z": no such seat; the seats are a, b`},
		{"--episode 0 --cell z", "choose among episodes"},
		{"--episode 0 --from 0", "choose among episodes"},
		{"--episode 0 --limit 50", "choose among episodes"},
		{"--episode 0 --call 0:0 --failed", "leave out --failed and --seat"},
	} {
		parley(t, State{}, append([]string{"show", file}, strings.Fields(c.args)...)...).want(t, exit.Misuse).wantErr(t, c.want)
	}
}

// TestShowHuge checks that an answer of a megabyte is shown in full, and that a cell of a table is cut.
func TestShowHuge(t *testing.T) {
	t.Parallel()
	entries := cliSample()
	words := strings.Repeat("long \u4e16 ", 1<<17)
	for _, e := range entries {
		if r, ok := e.(*journal.Replied); ok && r.Response != nil && r.Response.Text == "in the second strand" {
			r.Response.Text = words
		}
		if end, ok := e.(*journal.Ended); ok && end.Outcome.Failed != "" {
			end.Outcome.Failed = words
		}
	}
	file := runfiletest.File(t, entries...)
	if got := parley(t, State{}, "show", file, "--episode", "0").want(t, exit.OK).stdout; !strings.Contains(got, "| "+words+"\n") {
		t.Errorf("%d bytes", len(got))
	}
	s := atTerminal(map[string]string{"TERM": "dumb"})
	s.Terminal = func(any) int { return 100 }
	if got := parley(t, s, "show", file).want(t, exit.OK).stdout; len(got) > 5000 {
		t.Errorf("%d bytes", len(got))
	}
}

// closedPipe is a standard output whose reader is gone.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, &pathError{} }

type pathError struct{}

func (*pathError) Error() string { return "write |1: broken pipe" }
func (*pathError) Unwrap() error { return syscall.EPIPE }

func TestShowIntoClosedPipe(t *testing.T) {
	t.Parallel()
	file := runfiletest.File(t, cliSample()...)
	if got := parley(t, State{Stdout: closedPipe{}}, "show", file).want(t, exit.OK); got.stderr != "" {
		t.Error(got.stderr)
	}
}

// TestScoresText checks that a sum of tenths is rounded, and that a whole number keeps all its digits.
func TestScoresText(t *testing.T) {
	t.Parallel()
	tenth := 0.1
	got := scoresText([]world.Score{{Name: "reward", Value: -2*tenth - tenth/1e15}, {Name: "steps", Value: 123456}, {Name: "third", Value: 1.0 / 3}, {Name: "none", Value: math.NaN()}})
	if got != "reward -0.2, steps 123456, third 0.333333, none NaN" {
		t.Error(got)
	}
}

// TestStories compares the stories of example runs, and that of a kind without stories, with files.
func TestStories(t *testing.T) {
	t.Parallel()
	sequential(t)
	small := []string{"--set", "params.max_generations=2", "--set", "params.population_size=4", "--set", "params.problems.train=4", "--set", "params.problems.validation=0", "--set", "params.problems.test=4"}
	for _, c := range []struct {
		name, plan string
		last       bool // the last episode, instead of the first
		flags      []string
	}{
		{"secrets", "secrets-judge.yaml", false, nil},
		{"tournament", "secrets-tournament.yaml", false, []string{"--set", "episodes=1", "--set", "params.rounds=2", "--set", "params.messages=1"}},
		{"evolve", "evolve.yaml", true, small},
		{"trial", "evolve.yaml", false, small},
		{"rollout", "rollout-maze.yaml", false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), c.name+".parley")
			parley(t, State{}, append([]string{"run", "../../examples/" + c.plan, "--out", file, "--quiet"}, c.flags...)...).want(t, exit.OK)
			episode := 0
			if c.last {
				var run struct{ Episodes struct{ Total int } }
				if err := json.Unmarshal([]byte(parley(t, State{}, "show", file, "--json").stdout), &run); err != nil {
					t.Fatal(err)
				}
				episode = run.Episodes.Total - 1
			}
			story(t, c.name, file, episode)
		})
	}
	story(t, "other", runfiletest.File(t, cliSample()...), 0)
}

// story compares the story of an episode with a file.
func story(t *testing.T, name, file string, episode int) {
	t.Helper()
	got := parley(t, State{}, "show", file, "--episode", fmt.Sprint(episode), "--story").want(t, exit.OK).stdout
	golden(t, "story-"+name, strings.ReplaceAll(got, file, name+".parley"))
}

// TestShowInterview checks that the texts of an interview are in the transcript of the run.
func TestShowInterview(t *testing.T) {
	t.Parallel()
	file := conversation(t)
	parley(t, State{}, "score", file, "--with", "../../examples/scores/interview.yaml", "--quiet").want(t, exit.OK)
	if got := parley(t, State{}, "show", file, "--episode", "1").want(t, exit.OK).stdout; strings.Count(got, "asked afterwards: interview, regret\nby ") != 2 {
		t.Error(got)
	}
	if got := parley(t, State{}, "show", file, "--episode", "1", "--seat", "second").want(t, exit.OK).stdout; !strings.Contains(got, "by large (sim/large), about second\n") || strings.Contains(got, "about first") {
		t.Error(got)
	}
}
