package diplomacy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
)

const boardText = "You play one power.\n\nIt is S1901M. Units and supply centres:\nAustria: A BUD; 3 centres: BUD TRI VIE\nFrance: A PAR, A MAR; 3 centres: PAR\nGermany: out\n"

const unitsText = `You are France.

What your units can do:
(* has a centre)
A PAR, inland, *Fra +A MAR
 moves: BRE*Fra[F Fra], BUR +A MAR, PIC
A MAR, coast, *Fra
 moves: BUR +A PAR, SPA*-
`

func standInRequest(properties, own string) *llm.Request {
	return &llm.Request{Messages: []llm.Message{llm.System(boardText), llm.User(own)}, Schema: form(properties)}
}

// form is the schema of an object with these properties, and no name: not all wire formats have one.
func form(properties string) *llm.Schema {
	all := map[string]any{}
	for name := range strings.FieldsSeq(properties) {
		all[name] = map[string]any{}
	}
	b, _ := json.Marshal(map[string]any{"properties": all})
	return &llm.Schema{JSON: b}
}

func answered[T any](t *testing.T, req *llm.Request, seed uint64) (v T) {
	t.Helper()
	text, ok := standInAnswer("medium", req, seed)
	if again, _ := standInAnswer("medium", req, seed); again != text {
		t.Fatalf("%q, then %q", text, again)
	}
	if !ok || json.Unmarshal([]byte(text), &v) != nil {
		t.Fatalf("%s: %v %q", req.Schema.JSON, ok, text)
	}
	return v
}

func TestStandInKnowsItsGame(t *testing.T) {
	t.Parallel()
	for _, req := range []*llm.Request{
		{},
		{Messages: []llm.Message{llm.User("hi")}}, standInRequest("", unitsText), standInRequest("orders dance", unitsText), {Schema: form("reason orders")},
		{Messages: []llm.Message{llm.User("You are France.")}, Schema: form("text")}, {Messages: []llm.Message{llm.System(boardText)}, Schema: &llm.Schema{JSON: []byte("no JSON")}},
	} {
		if text, ok := standInAnswer("small", req, 1); ok {
			t.Errorf("Play answers %+v with %q, want no answer", req, text)
		}
	}
}

// TestStandInOrders checks that nearly all orders are legal, that no two units move to the same
// province, and that all kinds of orders occur.
func TestStandInOrders(t *testing.T) {
	t.Parallel()
	legal := []string{"A PAR H", "A PAR - BRE", "A PAR - BUR", "A PAR - PIC", "A MAR H", "A MAR - BUR", "A MAR - SPA", "A PAR S A MAR - BUR", "A MAR S A PAR - BUR"}
	seen := map[string]int{}
	for seed := range uint64(500) {
		answer := answered[struct{ Orders []string }](t, standInRequest("reason orders", unitsText), seed)
		if len(answer.Orders) != 2 {
			t.Fatalf("%q", answer.Orders)
		}
		if a, b := answer.Orders[0], answer.Orders[1]; strings.HasSuffix(a, "- BUR") && b == "A MAR - BUR" && !strings.Contains(a, " S ") {
			t.Errorf("both units move to the same province: %q", answer.Orders)
		}
		for _, o := range answer.Orders {
			if slices.Contains(legal, o) {
				seen[o]++
			} else {
				seen["illegal"]++
			}
		}
	}
	if seen["A MAR - SPA"] < 200 || seen["A PAR - BUR"] == 0 || seen["A PAR - PIC"] == 0 || seen["illegal"] == 0 || seen["illegal"] > 100 {
		t.Errorf("%v", seen)
	}
}

func TestStandInInOtherPhases(t *testing.T) {
	t.Parallel()
	type orders struct{ Orders []string }
	for seed := range uint64(50) {
		back := answered[orders](t, standInRequest("reason orders", "You are France.\n\nA BUR: can retreat to PAR*Fra, GAS\nF BRE: can retreat to none"), seed).Orders
		if len(back) != 2 || !slices.Contains([]string{"A BUR R PAR", "A BUR R GAS", "A BUR D"}, back[0]) || back[1] != "F BRE D" {
			t.Errorf("retreats: %q", back)
		}
		built := answered[orders](t, standInRequest("reason orders", "You may build 2, one in a place: A PAR B; A BRE B or F BRE B; A MAR B. WAIVE leaves one out."), seed).Orders
		if len(built) != 2 || built[0] == built[1] || !strings.HasSuffix(built[1], " B") {
			t.Errorf("builds: %q", built)
		}
		gone := answered[orders](t, standInRequest("reason orders", "You have to remove 1 of your units: A PAR D, F BRE D."), seed).Orders
		if len(gone) != 1 || !strings.HasSuffix(gone[0], " D") {
			t.Errorf("removals: %q", gone)
		}
	}
}

// TestStandInWrites checks that a simulated power writes only to other powers in the game, and sometimes nothing.
func TestStandInWrites(t *testing.T) {
	t.Parallel()
	seen, silent := map[string]bool{}, 0
	for seed := range uint64(300) {
		own := unitsText + "\nRound 1 of 3 of the talks."
		if seed%2 == 1 {
			own = unitsText + "\nSaid this turn:\n> Austria to you: Shall we keep TYR empty?\n> you to Austria: Hm.\n\nRound 2 of 3 of the talks."
		}
		answer := answered[struct{ Messages []messageDraft }](t, standInRequest("messages", own), seed)
		if len(answer.Messages) == 0 {
			silent++
		}
		for _, m := range answer.Messages {
			if m.To != "AUSTRIA" && m.To != "ALL" || m.Text == "" {
				t.Errorf("%+v", m)
			}
			seen[m.Text] = true
		}
	}
	if silent == 0 || silent > 200 || len(seen) < 20 {
		t.Errorf("%d of 300 answers are without messages, %d different texts", silent, len(seen))
	}
}

func TestStandInAnswersInEveryForm(t *testing.T) {
	t.Parallel()
	type diary struct {
		Diary     string
		Goals     []string
		Relations []struct{ Power, Relation string }
	}
	for seed := range uint64(20) {
		start := answered[diary](t, standInRequest("relations goals", unitsText), seed)
		entry := answered[diary](t, standInRequest("diary relations goals", unitsText), seed)
		if len(start.Goals) == 0 || len(start.Relations) == 0 || entry.Diary == "" || start.Relations[0].Power != "AUSTRIA" {
			t.Errorf("%+v %+v", start, entry)
		}
	}
	both := answered[struct {
		diary
		Orders []string
	}](t, standInRequest("diary relations goals orders", unitsText), 1)
	if both.Diary == "" || len(both.Orders) != 2 {
		t.Errorf("%+v", both)
	}
	if v := answered[struct {
		Vote   string
		Orders []string
	}](t, standInRequest("diary relations goals orders vote", unitsText), 1); v.Vote == "" || len(v.Orders) != 2 {
		t.Errorf("%+v", v)
	}
	if v := answered[struct{ Vote string }](t, standInRequest("reason orders vote", unitsText), 1); v.Vote != "DRAW" && v.Vote != "PLAY_ON" {
		t.Errorf("%+v", v)
	}
	alone := &llm.Request{Messages: []llm.Message{llm.User("You are France in a game of Diplomacy.")}, Schema: form("messages")}
	if m := answered[struct{ Messages []messageDraft }](t, alone, 1); len(m.Messages) != 0 {
		t.Errorf("alone in the game, and it wrote %+v", m)
	}
}

// TestStandInPromises checks that the judge finds explicit promises, and nothing else.
func TestStandInPromises(t *testing.T) {
	t.Parallel()
	const said = "> France to Austria: I will move A MAR to PIE this season. Will you leave it to me?\n> Austria to France: Yes. I will keep out of PIE.\n" +
		"> Austria to all: Let us keep the balance.\n> France to Austria: Agreed, and my F STP/SC will stay where it is."
	type promise struct{ From, To, Kind, Unit, Place string }
	got := answered[struct{ Promises []promise }](t, standInRequest("promises", said), 1).Promises
	want := []promise{{"FRANCE", "AUSTRIA", "move", "A MAR", "PIE"}, {"AUSTRIA", "FRANCE", "stay_out", "", "PIE"}, {"FRANCE", "AUSTRIA", "hold", "F STP/SC", ""}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// FuzzPlay checks that the answer to any prompt is JSON.
func FuzzPlay(f *testing.F) {
	f.Add(boardText, unitsText, uint64(1))
	f.Add("", "A PAR, inland\n moves: A, , *[\nA PAR: can retreat to \nYou may build 9: A PAR B\nYou are .", uint64(2))
	f.Fuzz(func(t *testing.T, system, own string, seed uint64) {
		for _, properties := range []string{"relations goals", "diary relations goals", "messages", "text", "reason orders", "reason orders vote", "diary relations goals orders", "diary relations goals orders vote", "promises"} {
			req := &llm.Request{Messages: []llm.Message{llm.System(gameName + system), llm.User(own)}, Schema: form(properties)}
			if text, ok := standInAnswer("small", req, seed); !ok || !json.Valid([]byte(text)) {
				t.Errorf("%s: %q", properties, text)
			}
		}
	})
}

// TestStandIn checks that the stand-in understands every prompt of a game: its power, its options, the
// other powers and the promises.
func TestStandIn(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	understood := func(c world.Call, r world.Reply) error {
		var a struct {
			Orders    []string
			Messages  []struct{ To string }
			Relations []struct{ Power string }
			Promises  []struct{ Kind string }
		}
		if err := json.Unmarshal(r.JSON, &a); err != nil {
			return err
		}
		seen["messages"] += len(a.Messages)
		seen["promises"] += len(a.Promises)
		switch {
		case slices.Contains([]string{"orders", "again", "retreats", "builds"}, c.Label) && len(a.Orders) == 0:
			return fmt.Errorf("no orders: %s", r.Text)
		case slices.Contains([]string{"start", "results"}, c.Label) && len(a.Relations) == 0:
			return fmt.Errorf("no relations: %s", r.Text)
		}
		for _, m := range a.Messages {
			if m.To == c.Seat {
				return fmt.Errorf("a message to itself: %s", r.Text)
			}
		}
		return nil
	}
	worldtest.StandIn(t, Kind(), []string{"start", "plan", "message", "orders", "again", "retreats", "builds", "results", "years", "promises"},
		worldtest.Options{Params: `{"rounds":2,"end_phase":"S1904M","planning":true,"judge":true,"draw_from":1904,` + threePowers + `}`, Understood: understood},
		worldtest.Options{Params: `{"rounds":1,"max_year":1903}`, Deals: 1, Understood: understood},
		worldtest.Options{Params: `{"rounds":0,"max_year":1902,"diary":false,"draw_from":1901}`, Deals: 1, Understood: understood},
	)
	if seen["messages"] == 0 || seen["promises"] == 0 {
		t.Errorf("no messages or no promises: %v", seen)
	}
}

// TestTemplatesHaveSigns checks that the templates have the texts by which the stand-in recognises
// them.
func TestTemplatesHaveSigns(t *testing.T) {
	t.Parallel()
	fill := func(name string) string {
		return standardPrompts().fill(name, func(variable string) string { return variable })
	}
	for _, c := range []struct{ template, sign string }{
		{promptSelf, powerPrefix + "power."}, {promptTalk, "\n" + roundPrefix + "round of"}, {promptTalk, messagesHeading}, {promptDecide, messagesHeading},
	} {
		if text := fill(c.template); !strings.Contains("\n"+text, c.sign) {
			t.Errorf("the template %s does not have %q:\n%s", c.template, c.sign, text)
		}
	}
}
