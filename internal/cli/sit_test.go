package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/cli/exit"
	"parley/internal/run/control"
	"parley/internal/run/engine"
	"parley/internal/run/runfile"
	"parley/internal/run/seat"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

const personPlan = `kind: secrets
episodes: 2
agents: {me: {model: human, deadline: 1h, fallback: small}, small: sim/small}
lineup: {first: me, second: small}
`

// background runs a command. stop sends it a signal.
func background(t *testing.T, in io.Reader, out io.Writer, args ...string) (ended <-chan outcome, stop func()) {
	t.Helper()
	signals := make(chan os.Signal, 1)
	done := make(chan outcome, 1)
	go func() {
		var stdout, stderr bytes.Buffer
		if out == nil {
			out = &stdout
		}
		code := mainWith(context.WithoutCancel(t.Context()), State{Args: args, Stdin: in, Stdout: out, Stderr: &stderr, Signals: signals})
		done <- outcome{code, stdout.String(), stderr.String()}
	}()
	return done, func() { signals <- os.Interrupt }
}

// sitDown takes a seat as a program does. answer returns the answers to try for a question; nil leaves the seat.
// It returns everything that the command printed, when the command has ended.
func sitDown(t *testing.T, file, name string, answer func(q seat.Question) []string) string {
	t.Helper()
	in, typed := io.Pipe()
	printed, out := io.Pipe()
	ended, _ := background(t, in, out, "sit", file, name, "--json")
	go func() {
		o := <-ended
		if o.code != exit.OK {
			t.Errorf("sit: exit code %d: %s", o.code, o.stderr)
		}
		_ = out.Close()
	}()
	var all strings.Builder
	lines := bufio.NewScanner(printed)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		var e struct{ Question *seat.Question }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Error(err)
		}
		if e.Question == nil {
			continue
		}
		answers := answer(*e.Question)
		if answers == nil {
			_ = typed.Close()
			continue
		}
		go func() {
			for _, text := range answers {
				b, _ := json.Marshal(map[string]string{"question": e.Question.ID, "answer": text})
				_, _ = fmt.Fprintf(typed, "%s\n", b)
			}
		}()
	}
	_ = in.Close() // what it still reads ends
	return all.String()
}

// cliReply is what the person of these tests answers.
func cliReply(q seat.Question) []string {
	last := q.Messages[len(q.Messages)-1].Text
	return []string{fmt.Sprintf("I heard %d letters in %d messages. <b>Bye.</b>", len(last), len(q.Messages))}
}

// digestOf returns the digest in a summary.
func digestOf(t *testing.T, o outcome) string {
	t.Helper()
	var sum struct{ Digest string }
	if err := json.Unmarshal([]byte(o.stdout), &sum); err != nil || sum.Digest == "" {
		t.Fatalf("exit code %d: %v: %s%s", o.code, err, o.stdout, o.stderr)
	}
	return sum.Digest
}

// copyRun copies a run file as a kill would leave it.
func copyRun(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "killed.parley")
	for _, suffix := range []string{"", "-wal", seat.Suffix} {
		b, err := os.ReadFile(from + suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || os.WriteFile(to+suffix, b, 0o600) != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestSit plays a run with a person: the outcomes are the same without a break, after Ctrl-C and after a kill while a
// question is open, and with another person in the same seat.
func TestSit(t *testing.T) {
	t.Parallel()
	plan, dir := write(t, "plan.yaml", personPlan), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		whole := filepath.Join(dir, "whole.parley")
		ended, _ := background(t, nil, nil, "run", plan, "--out", whole, "--json")
		time.Sleep(time.Second)
		sitDown(t, whole, "first", cliReply)
		want := digestOf(t, <-ended)

		file := filepath.Join(dir, "cut.parley")
		ended, stop := background(t, nil, nil, "run", plan, "--out", file, "--json")
		time.Sleep(time.Second)
		asked := 0
		sitDown(t, file, "me", func(q seat.Question) []string {
			if asked++; asked > 4 {
				return nil
			}
			return cliReply(q)
		})
		killed := copyRun(t, file)
		stop()
		if o := <-ended; o.code != exit.Interrupted {
			t.Errorf("exit code %d: %s", o.code, o.stderr)
		}
		for _, file := range []string{file, killed} {
			ended, _ = background(t, nil, nil, "run", file, "--json")
			time.Sleep(time.Second)
			again := 0
			sitDown(t, file, "first", func(q seat.Question) []string { again++; return cliReply(q) })
			if got := digestOf(t, <-ended); got != want || again < 2 || again > 3 { // 6 in all
				t.Errorf("%s: digest %s after %d more questions, want %s", file, got, again, want)
			}
			left, _ := filepath.Glob(file + "-*")
			for _, name := range left {
				if !strings.HasSuffix(name, "-lock") {
					t.Error("left behind:", name)
				}
			}
		}
	})
	for _, args := range [][]string{{"--episode", "0"}, {"--episode", "0", "--call", "0:0"}} {
		got := parley(t, State{}, append([]string{"show", filepath.Join(dir, "whole.parley")}, args...)...).want(t, exit.OK)
		if !strings.Contains(got.stdout, "(me, a person)") {
			t.Error(got.stdout)
		}
	}
	report := parley(t, State{}, "report", filepath.Join(dir, "whole.parley")).want(t, exit.OK)
	if !strings.Contains(report.stdout, "person") {
		t.Error(report.stdout)
	}
}

// TestSitRefuses: wrong answers are refused with a reason, and the person tries again; the answer to a question that
// is not open changes nothing. At the deadline the fallback answers.
func TestSitRefuses(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan, file := write(t, "plan.yaml", personPlan), filepath.Join(t.TempDir(), "run.parley")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ended, _ := background(t, nil, nil, "run", plan, "--out", file, "--json", "--set", "episodes=1", "--set", "agents.me.deadline=5m")
		time.Sleep(time.Second)
		asked, stale := 0, ""
		got := sitDown(t, file, "first", func(q seat.Question) []string {
			if asked++; asked == 1 {
				stale = q.ID
				return append([]string{" ", "a\x1b[2Jb", strings.Repeat("x", seat.MaxAnswer+1)}, cliReply(q)...)
			}
			return []string{} // it is too late
		})
		if o := <-ended; o.code != exit.OK {
			t.Errorf("%d: %s", o.code, o.stderr)
		}
		if strings.Count(got, `"refused":"`+stale) != 3 || !strings.Contains(got, "control character U+001B") || !strings.Contains(got, "is empty") || !strings.Contains(got, "shorten it") ||
			strings.Count(got, `"accepted"`) != 1 || strings.Count(got, `"closed"`) != 2 || !strings.Contains(got, `"end":"complete"`) {
			t.Error(got)
		}
		if err := seat.Send(t.Context(), file, seat.Answer{Question: stale, Seat: "first", Text: "late"}); !errors.Is(err, control.ErrNotPlayed) {
			t.Error(err)
		}
		if d := time.Since(began); d < 10*time.Minute || d > 11*time.Minute {
			t.Error("two deadlines took", d)
		}
	})
	got := parley(t, State{}, "show", file, "--episode", "0", "--call", "2:0").want(t, exit.OK)
	if !strings.Contains(got.stdout, "sim/small") || !strings.Contains(got.stdout, "me") {
		t.Error("the fallback is not shown:", got.stdout)
	}
	got = parley(t, State{}, "show", file, "--episode", "0").want(t, exit.OK)
	if !strings.Contains(got.stdout, "first (me, a person)") || !strings.Contains(got.stdout, "first (small instead of me)") {
		t.Error("the transcript does not say who answered:", got.stdout)
	}
	got = parley(t, State{}, "show", file, "--episode", "0", "--json").want(t, exit.OK)
	if strings.Count(got.stdout, `"fallback":"small"`) != 2 {
		t.Error(got.stdout)
	}
}

// TestSitMisuse: what is wrong is said, with what there is.
func TestSitMisuse(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	parley(t, State{}, "run", write(t, "plan.yaml", "kind: secrets\nagents: {a: sim/small}\n"), "--out", file, "--quiet").want(t, exit.OK)
	parley(t, State{}, "sit", file).want(t, exit.Misuse).wantErr(t, "no person takes part", "model: human")
	parley(t, State{}, "sit", file+"x").want(t, exit.Misuse).wantErr(t, "run.parleyx")
	parley(t, State{}, "ask", "hello", "--model", "human").want(t, exit.Misuse).wantErr(t, "only a run can ask a person", "parley sit")
	parley(t, State{}, "check", write(t, "plan.yaml", personPlan)).want(t, exit.OK)
	parley(t, State{}, "run", write(t, "plan.yaml", personPlan), "--pace", "wave").want(t, exit.Misuse).wantErr(t, "cannot be asked in waves")

	person := filepath.Join(t.TempDir(), "run.parley")
	synctest.Test(t, func(t *testing.T) {
		ended, stop := background(t, nil, nil, "run", write(t, "plan.yaml", personPlan), "--out", person, "--quiet")
		time.Sleep(time.Second)
		if o := parley(t, State{}, "sit", person); !strings.Contains(o.stdout, "first  me     2") {
			t.Error(o.stdout, o.stderr)
		}
		parley(t, State{}, "sit", person, "third").want(t, exit.Misuse).wantErr(t, `no person takes the seat "third"; want one of first`)
		stop()
		<-ended
	})
}

// TestSevenPeople: seven people play Diplomacy. Each is asked only as its own power, and orders its own units.
func TestSevenPeople(t *testing.T) {
	t.Parallel()
	powers := []string{"AUSTRIA", "ENGLAND", "FRANCE", "GERMANY", "ITALY", "RUSSIA", "TURKEY"}
	plan := "kind: diplomacy\nparams: {rounds: 0, end_phase: S1901M, diary: false}\nagents:\n"
	for _, p := range powers {
		plan += "  " + strings.ToLower(p) + ": human\n"
	}
	plan += "lineup: {"
	for _, p := range powers {
		plan += p + ": " + strings.ToLower(p) + ", "
	}
	file, file2 := filepath.Join(t.TempDir(), "run.parley"), write(t, "plan.yaml", plan+"}\n")
	synctest.Test(t, func(t *testing.T) {
		ended, _ := background(t, nil, nil, "run", file2, "--out", file, "--json")
		time.Sleep(time.Second)
		var wg sync.WaitGroup
		for _, p := range powers {
			wg.Go(func() {
				got := sitDown(t, file, p, func(q seat.Question) []string {
					if q.Seat != p || q.Offer == nil || len(q.Offer.Choices) < 3 || !strings.Contains(q.Offer.SVG, `data-at="`+q.Offer.Choices[0].At) {
						t.Errorf("%s is asked as %s, with %+v", p, q.Seat, q.Offer)
						return nil
					}
					orders := []string{}
					for _, c := range q.Offer.Choices {
						orders = append(orders, c.Options[len(c.Options)-1])
					}
					b, _ := json.Marshal(map[string]any{"reason": "<b>", "orders": orders})
					return []string{string(b)}
				})
				if strings.Count(got, `"accepted"`) != 1 || strings.Contains(got, `"refused"`) {
					t.Errorf("%s: %s", p, got)
				}
			})
		}
		wg.Wait()
		if o := <-ended; o.code != exit.OK || !strings.Contains(o.stdout, `"complete"`) {
			t.Errorf("%d: %s", o.code, o.stderr)
		}
	})
	got := parley(t, State{}, "show", file, "--episode", "0").want(t, exit.OK)
	if strings.Contains(got.stdout, "illegal") || strings.Contains(got.stdout, "refused") {
		t.Error(got.stdout)
	}
}

const (
	attack = "\x1b[2J\x1b]0;title\x07\u202e<b>"
	fields = `{"type":"object","properties":{"vote":{"enum":["draw","continue"]},"orders":{"type":"array","items":{"type":"string"}},"count":{"type":"integer","minimum":1},
		"messages":{"type":"array","items":{"type":"object","properties":{"to":{"enum":["ITALY","ALL"]},"text":{"type":"string"}},"required":["to","text"]}},"words":{"type":"array","items":{"type":"string"}}},"required":["vote","orders","count"]}`
)

// TestTalk: a person in a terminal fills in a form, chooses by number, corrects what was refused, and sees no control
// character of anybody.
func TestTalk(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run.parley")
	synctest.Test(t, func(t *testing.T) {
		store, err := runfile.Open(t.Context(), run, runfile.Create)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		spec := world.Spec{Kind: "duel", Lineup: map[string]string{"FRANCE": "me"}}
		if err := store.Append(t.Context(), &journal.Begun{Version: journal.Version, Run: "r", Kind: "duel", KindVersion: 1, Agents: []world.Agent{{Name: "me", Model: world.Human}}}, &journal.Opened{},
			&journal.Staged{Specs: world.Repeat(spec, 1)}, &journal.Turned{Calls: 1},
			&journal.Replied{Seat: "FRANCE", Agent: "me", Label: "first", Request: &llm.Request{Model: "sim/x", Messages: []llm.Message{llm.User("old " + attack)}}, Response: &llm.Response{Text: "was said" + attack}}); err != nil {
			t.Fatal(err)
		}
		open := seat.New(run)
		end, err := control.Serve(t.Context(), run, map[string]control.Handler{seat.Verb: open.Handle})
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		ask := func(turn int, schema string, offer *world.Offer) <-chan *llm.Response {
			q := engine.Question{Turn: journal.Turn{Turn: turn}, Seat: "FRANCE", Agent: "me", Label: "orders", Offer: offer, Deadline: time.Hour, Request: &llm.Request{Messages: []llm.Message{llm.User("new " + attack)}}}
			if schema != "" {
				q.Request.Schema = &llm.Schema{JSON: json.RawMessage(schema)}
			}
			got := make(chan *llm.Response, 1)
			go func() {
				resp, _ := open.Ask(context.WithoutCancel(t.Context()), q)
				got <- resp
			}()
			synctest.Wait() // questions are open in the order in which they are asked
			return got
		}
		orders := &world.Offer{Field: "orders", Choices: []world.Choice{{Name: "Paris" + attack, Options: []string{"A PAR H", "A PAR - BUR"}}, {Name: "Brest", Options: []string{"F BRE H"}}}}
		first, second, third := ask(1, fields, orders), ask(2, "", nil), ask(3, `{"type":"array","items":{"type":"number"}}`, nil)
		in, typed := io.Pipe()
		var out strings.Builder
		done := make(chan error, 1)
		go func() {
			done <- (&seatPlayer{file: run, name: "FRANCE", store: store, in: in, out: &out}).run(context.WithoutCancel(t.Context()))
		}()
		fill := "2\nA PAR H\n"
		for _, text := range []string{
			"war\n\n\n0\n\n\n", // no such vote
			fill + "\n0\n\n\n", // refused by the schema
			"draw\n2\n\n3\n2\nhello\n1\nciao\n\none\ntwo\n\n", // right
			"a line\nand another\n\n",                         // text
			"\n{\n\n", "[1, 2,\n3]\n\n",                       // JSON, cut off and whole
		} {
			_, _ = io.WriteString(typed, text)
			time.Sleep(time.Second)
		}
		want := `{"vote":"draw","orders":["A PAR - BUR"],"count":3,"messages":[{"to":"ALL","text":"hello"},{"to":"ITALY","text":"ciao"}],"words":["one","two"]}`
		if r := <-first; string(r.JSON) != want {
			t.Errorf("%s", r.JSON)
		}
		if r := <-second; r.Text != "a line\nand another" {
			t.Errorf("%q", r.Text)
		}
		if r := <-third; string(r.JSON) != "[1, 2,\n3]" {
			t.Errorf("%s", r.JSON)
		}
		if err := store.Append(t.Context(), &journal.Closed{State: journal.Complete}); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = in.Close()
		for _, text := range []string{"[sim/x, for you]", "was said", "Not accepted: choose one of draw, continue", "Not accepted: count: expected at least 1", "answer within 1h0m0s", "2 A PAR - BUR", "has no end", "The run is complete."} {
			if !strings.Contains(out.String(), text) {
				t.Errorf("it does not say %q", text)
			}
		}
		if strings.ContainsAny(out.String(), "\x1b\x07\u202e") {
			t.Errorf("control characters: %q", out.String())
		}
		if t.Failed() {
			t.Log(out.String())
		}
	})
}

// TestLongLine: a line that is too long is an error, not the end.
func TestLongLine(t *testing.T) {
	t.Parallel()
	s := &seatPlayer{lines: make(chan string)}
	s.readLines(t.Context(), strings.NewReader(strings.Repeat("x", maxAnswerLine+1)))
	if _, err := s.nextLine(t.Context()); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Error(err)
	}
}
