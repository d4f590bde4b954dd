package secrets

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestExercise(t *testing.T) {
	t.Parallel()
	for _, params := range []string{
		"", `{"messages": 3, "categories": ["weather"]}`,
		`{"words": ["Übermut", "ice cream", "虎", "O'Hara"], "persona": {"second": "You are in a hurry."}}`,
	} {
		t.Run(params, func(t *testing.T) {
			t.Parallel()
			worldtest.Exercise(t, Kind(), worldtest.Options{Params: params})
		})
	}
}

// played is an episode that was played by a script.
type played struct {
	prompts [][]llm.Message
	notes   []world.Note
	outcome world.Outcome
	record  Record
}

// script plays an episode: say is given whose turn it is, and both secrets.
func script(t *testing.T, params string, deal int, say func(turn int, own, other string) world.Reply) played {
	t.Helper()
	p := defaults()
	if err := json.Unmarshal([]byte(params), p); err != nil {
		t.Fatal(err)
	}
	w, err := Kind().World(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out played
	s := world.Begin(w, world.Deal{Seed: 1, Number: deal})
	defer s.Stop()
	turn := s.Next(nil)
	for n := 0; ; n++ {
		out.notes = append(out.notes, turn.Notes...)
		if turn.Panic != "" {
			t.Fatal(turn.Panic, turn.Stack)
		}
		if turn.Done {
			out.outcome = turn.Outcome
			out.record = turn.Outcome.Data.(Record)
			return out
		}
		if want := []string{First, Second}[n%2]; len(turn.Calls) != 1 || turn.Calls[0].Seat != want {
			t.Fatalf("turn %d: calls %+v, want one of %s", n, turn.Calls, want)
		}
		out.prompts = append(out.prompts, turn.Calls[0].Ask.Messages)
		var secrets [2]string
		for i := range secrets {
			if err := json.Unmarshal(out.notes[i].Data, &secrets[i]); err != nil {
				t.Fatal(err)
			}
		}
		turn = s.Next([]world.Reply{say(n, secrets[n%2], secrets[1-n%2])})
	}
}

func (p played) score(seat, name string) float64 {
	for _, s := range p.outcome.Scores {
		if s.Seat == seat && s.Name == name {
			return s.Value
		}
	}
	return -1
}

func TestScores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first, second int // the turn in which each tells, or -1
		want          [8]float64
		reveals       string
	}{
		{-1, -1, [8]float64{0, 0, 0, 0, 0, 0, 0, 0}, "[]"},
		{2, 3, [8]float64{1, 1, 1, 0, 1, 1, 1, 0}, "[{first 3 said} {second 4 said}]"},
		{4, 1, [8]float64{1, 1, 1, 0, 1, 1, 1, 0}, "[{second 2 said} {first 5 said}]"},
		{0, -1, [8]float64{0, 1, 0, 0, 3, 0, 1, 1}, "[{first 1 said}]"},
		{-1, 5, [8]float64{3, 0, 1, 1, 0, 1, 0, 0}, "[{second 6 said}]"},
	} {
		p := script(t, "{}", 3, func(turn int, own, other string) world.Reply {
			if turn == c.first || turn == c.second {
				return say("Well then: " + strings.ToUpper(own) + "!")
			}
			return say("I guess yours is " + other + "?") // a guess gives nothing of one's own away
		})
		var got [8]float64
		for i, seat := range []string{First, Second} {
			for j, name := range []string{"points", "revealed", "obtained", "optimal"} {
				got[4*i+j] = p.score(seat, name)
			}
		}
		if got != c.want || fmt.Sprint(p.record.Reveals) != c.reveals || p.record.Messages != 6 || p.outcome.Failed != "" {
			t.Errorf("told in %d and %d: %v, %+v; want %v, %s", c.first, c.second, got, p.record, c.want, c.reveals)
		}
	}
}

// TestDeals: each deal has secrets of its own, and nothing but the deal decides them.
func TestDeals(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for deal := range 300 {
		one := script(t, `{"messages": 2}`, deal, func(int, string, string) world.Reply { return say("Hello.") })
		two := script(t, `{"messages": 4}`, deal, func(int, string, string) world.Reply { return failed() })
		if !reflect.DeepEqual(one.record.Secrets, two.record.Secrets) {
			t.Fatalf("deal %d: %v and %v", deal, one.record.Secrets, two.record.Secrets)
		}
		a, b := one.record.Secrets[First], one.record.Secrets[Second]
		if a == b {
			t.Errorf("deal %d: both hold %s", deal, a)
		}
		seen[a]++
		seen[b]++
	}
	if len(seen) != 96 {
		t.Errorf("%d words were dealt of 96", len(seen))
	}
	own := script(t, `{"words": ["left", "right"]}`, 0, func(int, string, string) world.Reply { return say("Hello.") })
	if got := own.record.Secrets[First] + " " + own.record.Secrets[Second]; got != "left right" && got != "right left" {
		t.Errorf("of two words of one's own: %s", got)
	}
}

func failed() world.Reply { return world.Reply{Failed: llm.KindTimeout} }

func TestSilence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		silent   string // a turn each: . is a message, x a failure, o a reply without words
		failed   string
		messages int
		asked    int
	}{
		{"......", "", 6, 6},
		{"x.....", "", 5, 6},
		{".o..x.", "", 4, 6},
		{".x.x..", "", 4, 6},
		{"x.x.x.", "first never said a word", 3, 6},
		{".o.x.x", "second never said a word", 3, 6},
		{"xx", "both players were silent, one after the other", 0, 2},
		{"..ox", "both players were silent, one after the other", 2, 4},
		{"....xx", "both players were silent, one after the other", 4, 6},
	} {
		p := script(t, "{}", 0, func(turn int, own, _ string) world.Reply {
			switch c.silent[turn] {
			case 'x':
				return world.Reply{Failed: llm.KindTimeout, Text: own} // even if somebody slipped a text in
			case 'o':
				return say(" \n\t")
			}
			return say(fmt.Sprint("message ", turn))
		})
		if p.outcome.Failed != c.failed || p.record.Messages != c.messages || len(p.prompts) != c.asked {
			t.Errorf("%s: failed %q, %d messages, %d asked; want %q, %d, %d", c.silent, p.outcome.Failed, p.record.Messages, len(p.prompts), c.failed, c.messages, c.asked)
		}
		if (c.failed == "") != (len(p.outcome.Scores) == 8) || len(p.record.Reveals) > 0 {
			t.Errorf("%s: scores %v, reveals %v", c.silent, p.outcome.Scores, p.record.Reveals)
		}
		checkRoles(t, c.silent, p)
	}
}

// checkRoles holds every prompt to the promise: the system first, then user and assistant
// by turns, a user last; one's own words as assistant and nothing else; the other's as user.
func checkRoles(t *testing.T, name string, p played) {
	t.Helper()
	for turn, ms := range p.prompts {
		var own, heard []string
		for i, m := range ms {
			want := []llm.Role{llm.RoleAssistant, llm.RoleUser}[i%2]
			if i == 0 {
				want = llm.RoleSystem
			}
			if m.Role != want || m.Text() == "" {
				t.Errorf("%s: turn %d: message %d is %s %q, want one of %s", name, turn, i, m.Role, m.Text(), want)
			}
			switch m.Role {
			case llm.RoleAssistant:
				own = append(own, m.Text())
			case llm.RoleUser:
				for part := range strings.SplitSeq(m.Text(), "\n\n") {
					if !strings.HasPrefix(part, "[") {
						heard = append(heard, part)
					}
				}
			}
		}
		if last := ms[len(ms)-1]; last.Role != llm.RoleUser {
			t.Errorf("%s: turn %d ends with %s", name, turn, last.Role)
		}
		var wantOwn, wantHeard []string
		for i := range turn {
			switch text := fmt.Sprint("message ", i); {
			case name[i] != '.':
			case i%2 == turn%2:
				wantOwn = append(wantOwn, text)
			default:
				wantHeard = append(wantHeard, text)
			}
		}
		if !reflect.DeepEqual(own, wantOwn) || !reflect.DeepEqual(heard, wantHeard) {
			t.Errorf("%s: turn %d: own %q, heard %q; want %q, %q", name, turn, own, heard, wantOwn, wantHeard)
		}
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	p := script(t, `{"messages": 3, "words": ["tiger", "zebra"]}`, 0, func(turn int, own, _ string) world.Reply {
		if turn == 1 {
			return failed()
		}
		return say("It is " + own + ".")
	})
	var got []string
	for _, n := range p.notes {
		got = append(got, fmt.Sprintf("%s %s %s", n.Kind, n.Seat, n.Data))
	}
	a, b := p.record.Secrets[First], p.record.Secrets[Second]
	want := []string{
		fmt.Sprintf("secret first %q", a),
		fmt.Sprintf("secret second %q", b),
		`message first {"number":1,"to":"second","text":"It is ` + a + `.","reveals":"said"}`,
		`silence second {"number":2,"to":"first","failed":"timeout"}`,
		`message first {"number":3,"to":"second","text":"It is ` + a + `.","reveals":"said"}`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestBots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first, second string
		want          [2]float64
	}{
		{"teller", "keeper", [2]float64{0, 3}},
		{"keeper", "teller", [2]float64{3, 0}},
		{"keeper", "trader", [2]float64{0, 0}},
		{"teller", "trader", [2]float64{1, 1}},
		{"trader", "trader", [2]float64{0, 0}},
	} {
		w, err := Kind().World(defaults(), nil)
		if err != nil {
			t.Fatal(err)
		}
		s := world.Begin(w, world.Deal{})
		turn := s.Next(nil)
		for n := 0; !turn.Done; n++ {
			bot := Kind().Bots[[]string{c.first, c.second}[n%2]]
			turn = s.Next([]world.Reply{bot(turn.Calls[0])})
		}
		p := played{outcome: turn.Outcome}
		if got := [2]float64{p.score(First, "points"), p.score(Second, "points")}; got != c.want {
			t.Errorf("%s and %s: %v, want %v", c.first, c.second, got, c.want)
		}
	}
}

func TestParamsAreChecked(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`{"mode": "chess"}`:                                              `secrets: params.mode: "chess" is none: use standard`,
		`{"messages": 1}`:                                                "secrets: params.messages: 1: want 2 to 200; it counts both players' together",
		`{"messages": 201}`:                                              "params.messages: 201",
		`{"categories": ["cars"]}`:                                       `params.categories: "cars" is none: use animals, clothing`,
		`{"categories": ["food", "food"]}`:                               "params.categories: food is listed twice",
		`{"categories": []}`:                                             "params.categories: none, and no words either",
		`{"words": ["tiger"]}`:                                           `params.words: only "tiger": want two or more`,
		`{"words": ["tiger", "ox"]}`:                                     `params.words: "ox": want 3 letters or more`,
		`{"words": ["tiger", "Tíger!"]}`:                                 `params.words: "tiger" and "Tíger!" sound the same`,
		`{"words": ["tiger", "a\nsystem: b"]}`:                           "want plain text on one line",
		`{"words": ["tiger", "…"]}`:                                      "want 3 letters or more",
		`{"words": ["tiger", "` + strings.Repeat("long", 20) + `"]}`:     "want at most 40 bytes",
		`{"persona": {"third": "x"}}`:                                    "params.persona.third: is no seat: use first or second",
		`{"persona": {"first": "` + strings.Repeat("long", 3000) + `"}}`: "params.persona.first: want a text of at most",
	} {
		p := defaults()
		if err := json.Unmarshal([]byte(params), p); err != nil {
			t.Fatal(err)
		}
		_, err := Kind().Seats(p)
		_, also := Kind().World(p, nil)
		if err == nil || also == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", params, err, want)
		}
	}
	if seats, err := Kind().Seats(defaults()); err != nil || !reflect.DeepEqual(seats, []string{First, Second}) {
		t.Errorf("defaults: %v, %v", seats, err)
	}
}

// TestExampleIsTheFile: the plan file that people run first is the one the kind shows,
// and it leaves no param out.
func TestExampleIsTheFile(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "examples", "secrets.yaml"))
	if err != nil || string(b) != Kind().Example {
		t.Errorf("examples/secrets.yaml is not the kind's example (%v)", err)
	}
	for f := range reflect.TypeFor[Params]().Fields() {
		if name := f.Tag.Get("json"); !strings.Contains(Kind().Example, "\n  "+name+": ") {
			t.Errorf("the example does not show %s", name)
		}
	}
}
