package secrets

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
)

// TestExercise runs the tests of package worldtest on every mode, with few and many players.
func TestExercise(t *testing.T) {
	t.Parallel()
	for _, params := range []string{
		"", `{"words": ["Übermut", "ice cream", "虎", "O'Hara"], "persona": {"second": "You are in a hurry."}, "rounds": 2, "messages": 1, "judge": "report"}`,
		`{"mode": "retained", "players": 4, "rounds": 2, "messages": 1}`,
		`{"mode": "diversity", "players": 5, "rounds": 2, "messages": 1, "pairing": "swiss", "judge": "decide"}`,
		`{"mode": "targeted", "players": 3, "rounds": 2, "messages": 1, "pairing": "round-robin", "memory": "short"}`,
	} {
		t.Run(params, func(t *testing.T) {
			t.Parallel()
			worldtest.Exercise(t, Kind(), worldtest.Options{Params: params, Answer: answer})
		})
	}
}

// answer sometimes gives the secret away, and judges at random.
func answer(c world.Call, r *rand.Rand) world.Reply {
	switch {
	case c.Ask.Schema != nil:
		return world.Reply{JSON: fmt.Appendf(nil, `{"a":{"reason":"r","revealed":%v,"message":1},"b":{"reason":"","revealed":false,"message":9}}`, r.IntN(2) == 0)}
	case r.IntN(3) == 0:
		return botReply("It is " + wordOf(c) + ".")
	}
	return worldtest.Prose(c, r)
}

// TestSilence checks that a failed or empty reply is a silent turn and never a message.
func TestSilence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		silent   string // by turn: . is a message, x a failure, o an empty reply
		failed   string
		messages int
		asked    int
	}{
		{"......", "", 6, 6},
		{"x.....", "", 5, 6},
		{".o..x.", "", 4, 6},
		{".x.x..", "", 4, 6},
		{"x.x.x.", "first never said a word: timeout (3 of 6 calls)", 3, 6},
		{".o.x.x", "second never said a word: timeout (2 of 6 calls)", 3, 6},
		{".o.o.o", "second never said a word", 3, 6},
		{"xx", "both players were silent, one after the other: timeout (2 of 2 calls)", 0, 2},
		{"oo", "both players were silent, one after the other", 0, 2},
		{"..ox", "both players were silent, one after the other: timeout (1 of 4 calls)", 2, 4},
		{"....xx", "both players were silent, one after the other: timeout (2 of 6 calls)", 4, 6},
	} {
		p := script(t, "{}", 0, func(turn int, own, _ string) world.Reply {
			switch c.silent[turn] {
			case 'x':
				return world.Reply{Failed: llm.KindTimeout, Text: own} // the text of a failed reply must be ignored
			case 'o':
				return botReply(" \n\t")
			}
			return botReply(fmt.Sprint("message ", turn))
		})
		k := p.record.Conversations[0]
		if p.outcome.Failed != c.failed || k.Failed != c.failed || k.Messages != c.messages || len(p.calls) != c.asked {
			t.Errorf("%s: failed %q, %+v, %d calls; want %q, %d, %d", c.silent, p.outcome.Failed, k, len(p.calls), c.failed, c.messages, c.asked)
		}
		if (c.failed == "") != (len(p.outcome.Scores) == 10) || len(k.Reveals) > 0 {
			t.Errorf("%s: scores %v, reveals %v", c.silent, p.outcome.Scores, k.Reveals)
		}
		for _, call := range p.calls {
			for _, m := range call.Ask.Messages[1:] {
				if text := m.Text(); strings.Contains(text, p.secrets[firstSeat]) || strings.Contains(text, p.secrets[secondSeat]) {
					t.Errorf("%s: the text of a failed reply is in a prompt: %q", c.silent, text)
				}
			}
		}
	}
}

// TestOnePlayerFails checks that the conversations of other players count if one player fails.
func TestOnePlayerFails(t *testing.T) {
	t.Parallel()
	p := drive(t, `{"players": 4, "rounds": 3, "messages": 1}`, 0, func(_ *played, c world.Call) world.Reply {
		if c.Seat == "player3" {
			return failed()
		}
		return botReply("It is " + wordOf(c) + ".")
	})
	for _, k := range p.record.Conversations {
		if (k.Failed != "") != slices.Contains(k.Seats[:], "player3") || k.Failed != "" && len(k.Revealed) > 0 {
			t.Errorf("%+v", k)
		}
	}
	if p.score("player3", "points") != -1 || p.score("player1", "points") != 2 || p.score("player1", "revealed") != 1 || p.outcome.Failed != "" {
		t.Errorf("%q %+v", p.outcome.Failed, p.outcome.Scores)
	}
	p = drive(t, `{"players": 4, "rounds": 2, "messages": 1}`, 0, func(*played, world.Call) world.Reply { return failed() })
	if len(p.outcome.Scores) != 0 || !strings.HasPrefix(p.outcome.Failed, "none of 4 conversations took place; in the first, both players were silent") {
		t.Errorf("%+v", p.outcome)
	}
}

// TestNotes checks the notes of a conversation.
func TestNotes(t *testing.T) {
	t.Parallel()
	p := script(t, `{"messages": 2, "words": ["tiger", "zebra"]}`, 0, func(turn int, own, other string) world.Reply {
		return []world.Reply{botReply("It is " + own + "."), failed(), botReply("Well?"), botReply("Not " + other + "?")}[turn]
	})
	var got []string
	for _, n := range p.notes {
		got = append(got, fmt.Sprintf("%s %s %s", n.Kind, n.Seat, n.Data))
	}
	a, b := p.secrets[firstSeat], p.secrets[secondSeat]
	want := []string{
		fmt.Sprintf("secret first %q", a),
		fmt.Sprintf("secret second %q", b),
		`phase  "round 1"`,
		`message first {"round":1,"number":1,"to":"second","text":"It is ` + a + `.","reveals":"said"}`,
		`silence second {"round":1,"number":2,"to":"first","failed":"timeout"}`,
		`message first {"round":1,"number":3,"to":"second","text":"Well?"}`,
		`message second {"round":1,"number":4,"to":"first","text":"Not ` + a + `?","names":"said"}`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestManyNotes checks that a game of many players notes the pairs, who sits out, and the points.
func TestManyNotes(t *testing.T) {
	t.Parallel()
	p := drive(t, `{"players": 3, "rounds": 2, "messages": 1, "pairing": "round-robin", "mode": "targeted", "target": "player2"}`, 0,
		func(_ *played, c world.Call) world.Reply { return botReply("It is " + wordOf(c) + ".") })
	var got []string
	for _, n := range p.notes {
		if n.Kind != "message" && n.Kind != "secret" {
			got = append(got, fmt.Sprintf("%s %s %s", n.Kind, n.Seat, n.Data))
		}
	}
	want := []string{
		fmt.Sprintf("target player2 %q", p.secrets["player2"]),
		`phase  "round 1"`,
		`round  {"round":1,"pairs":[["player2","player3"]],"sits":"player1"}`,
		`standings  {"points":{"player1":0,"player2":1,"player3":6},"round":1}`,
		`phase  "round 2"`,
		`round  {"round":2,"pairs":[["player1","player2"]],"sits":"player3"}`,
		`standings  {"points":{"player1":6,"player2":2,"player3":6},"round":2}`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if p.record.Winner != "" || p.record.Target != "player2" || !reflect.DeepEqual(p.record.Collected["player2"], []string{"player3", "player1"}) {
		t.Errorf("%+v", p.record)
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
		p := drive(t, "{}", 0, func(_ *played, call world.Call) world.Reply {
			return Kind().Bots()[map[string]string{firstSeat: c.first, secondSeat: c.second}[call.Seat]](call)
		})
		if got := [2]float64{p.score(firstSeat, "points"), p.score(secondSeat, "points")}; got != c.want {
			t.Errorf("%s and %s: %v, want %v", c.first, c.second, got, c.want)
		}
	}
}

// TestExampleIsTheFile checks that examples/secrets.yaml is the kind's example and has every param.
func TestExampleIsTheFile(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "examples", "secrets.yaml"))
	if err != nil || string(b) != Kind().Example {
		t.Errorf("examples/secrets.yaml is not the kind's example (%v)", err)
	}
	for f := range reflect.TypeFor[Params]().Fields() {
		name, optional := strings.CutSuffix(f.Tag.Get("json"), ",omitempty")
		if optional {
			name = "# " + name // it is shown, but not set
		}
		if !strings.Contains(Kind().Example, "\n  "+name+": ") {
			t.Errorf("the example does not show %s", name)
		}
	}
	for _, list := range [][]string{wordCategories(), formNames(), contextParts()} {
		if !strings.Contains(Kind().Example, "["+strings.Join(list, ", ")+"]") {
			t.Errorf("the example does not list %v", list)
		}
	}
	if _, err := json.Marshal(definition{}.Defaults()); err != nil {
		t.Error(err)
	}
}

// TestFixedSecrets checks that seats get the secrets of the plan, and that others never draw them.
func TestFixedSecrets(t *testing.T) {
	t.Parallel()
	for deal := range 20 {
		p := script(t, `{"messages": 1, "words": ["Tiger", "zebra"], "secrets": {"second": "tiger"}, "texts": {"intro": "A game.", "rules": "No rules."}}`, deal, func(int, string, string) world.Reply { return botReply("Hm.") })
		if p.secrets[firstSeat] != "zebra" || p.secrets[secondSeat] != "tiger" {
			t.Errorf("deal %d: %v", deal, p.secrets)
		}
		text := p.calls[0].Ask.Messages[0].Text()
		if !strings.HasPrefix(text, "A game.\n\nYour secret: zebra\n\nNo rules.\n\n") {
			t.Errorf("the instructions are\n%s", text)
		}
	}
	for params, want := range map[string]string{
		`{"secrets": {"third": "tiger"}}`:                     "secrets.third: unknown seat",
		`{"secrets": {"first": "a"}}`:                         "secrets.first",
		`{"secrets": {"first": "tiger", "second": "TIGER"}}`:  "sound the same",
		`{"texts": {"opening": "x"}}`:                         "texts.opening: unknown text; want one of intro",
		`{"categories": [], "secrets": {"first": "tiger"}}`:   "categories",
		`{"words": ["tiger"], "secrets": {"first": "zebra"}}`: "words",
	} {
		if _, err := (definition{}).Seats(paramsOf(t, params)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", params, err)
		}
	}
	if _, err := (definition{}).Seats(paramsOf(t, `{"categories": [], "secrets": {"first": "tiger", "second": "zebra"}}`)); err != nil {
		t.Error(err)
	}
}

// TestReveals checks the table of reveals.
func TestReveals(t *testing.T) {
	t.Parallel()
	p := script(t, `{"messages": 1, "words": ["tiger", "zebra"]}`, 0, func(turn int, own, other string) world.Reply {
		return []world.Reply{botReply("It is " + own + "."), botReply("Not " + other + "?")}[turn]
	})
	data, err := json.Marshal(p.record)
	if err != nil {
		t.Fatal(err)
	}
	episode := world.Played{Spec: world.Spec{Lineup: map[string]string{firstSeat: "a", secondSeat: "b"}}, Outcome: world.Outcome{Data: json.RawMessage(data)}}
	table := definition{}.Tables()[0]
	secret := p.secrets[firstSeat]
	want := [][]any{
		{1, 1, firstSeat, "a", secondSeat, "b", "own", secret, "said", "It is " + secret + "."},
		{1, 2, secondSeat, "b", firstSeat, "a", "other", secret, "said", "Not " + secret + "?"},
	}
	if got := table.Rows(episode, p.notes); !reflect.DeepEqual(got, want) || len(table.Columns) != len(want[0]) {
		t.Errorf("got %v, want %v", got, want)
	}
	if table.Rows(world.Played{}, p.notes) != nil {
		t.Error("rows without an outcome")
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// played is an episode that a test has played.
type played struct {
	*Params
	calls   []world.Call // in order, one strand after the other
	notes   []world.Note
	secrets map[string]string
	outcome world.Outcome
	record  Game
}

// paramsOf returns the defaults with some changed.
func paramsOf(t *testing.T, params string) *Params {
	t.Helper()
	p := definition{}.Defaults()
	if err := json.Unmarshal([]byte(params), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// drive plays an episode. The function answer replies to each call.
func drive(t *testing.T, params string, deal int, answer func(p *played, c world.Call) world.Reply) *played {
	t.Helper()
	p := &played{Params: paramsOf(t, params), secrets: map[string]string{}}
	w, err := definition{}.World(p.Params, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.strand(t, world.Begin(w, world.Deal{Seed: 1, Number: deal}), answer)
	return p
}

// strand plays a strand and its forks.
func (p *played) strand(t *testing.T, s *world.Strand, answer func(p *played, c world.Call) world.Reply) {
	t.Helper()
	defer s.Stop()
	turn := s.Next(nil)
	for !turn.Done {
		p.take(t, turn)
		var replies []world.Reply
		for _, f := range turn.Forks {
			p.strand(t, f, answer)
		}
		for _, c := range turn.Calls {
			p.calls = append(p.calls, c)
			replies = append(replies, answer(p, c))
		}
		turn = s.Next(replies)
	}
	p.take(t, turn)
	if r, ok := turn.Outcome.Data.(Game); ok {
		p.outcome, p.record = turn.Outcome, r
	}
}

func (p *played) take(t *testing.T, turn world.Turn) {
	t.Helper()
	if turn.Panic != "" {
		t.Fatal(turn.Panic, turn.Stack)
	}
	p.notes = append(p.notes, turn.Notes...)
	for _, n := range turn.Notes {
		var word string
		if n.Kind == "secret" && json.Unmarshal(n.Data, &word) == nil {
			p.secrets[n.Seat] = word
		}
	}
}

// script plays a conversation of two players. The function say gets the number of the turn and both
// secrets.
func script(t *testing.T, params string, deal int, say func(turn int, own, other string) world.Reply) *played {
	t.Helper()
	return drive(t, params, deal, func(p *played, c world.Call) world.Reply {
		turn := len(p.calls) - 1
		seats := []string{firstSeat, secondSeat}
		if c.Seat != seats[turn%2] {
			t.Fatalf("turn %d: the call is for %s", turn, c.Seat)
		}
		return say(turn, p.secrets[c.Seat], p.secrets[seats[1-turn%2]])
	})
}

func (p *played) score(seat, name string) float64 {
	for _, s := range p.outcome.Scores {
		if s.Seat == seat && s.Name == name {
			return s.Value
		}
	}
	return -1
}

func failed() world.Reply { return world.Reply{Failed: llm.KindTimeout} }
