package secrets

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// oneOf lists the texts that a field of the params allows.
func oneOf(field string) []string {
	f, _ := reflect.TypeFor[Params]().FieldByName(field)
	return strings.Split(f.Tag.Get("oneof"), ",")
}

func TestParamsAreChecked(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long", 3000)
	for params, want := range map[string]string{
		`{"mode": "chess"}`:     `secrets: params.mode: wants one of standard, retained, diversity, targeted, found "chess"`,
		`{"pairing": "fair"}`:   `params.pairing: wants one of random, round-robin, swiss, found "fair"`,
		`{"memory": "none"}`:    `params.memory: wants one of long, short, found "none"`,
		`{"judge": "yes"}`:      `params.judge: wants one of none, report, decide, found "yes"`,
		`{"target_known": "x"}`: `params.target_known: wants one of everyone, holder, others, nobody, found "x"`,
		`{"players": 1}`:        "params.players: wants 2 to 100, found 1",
		`{"players": 101}`:      "params.players: wants 2 to 100, found 101",
		`{"rounds": 0}`:         "params.rounds: wants 1 to 200, found 0",
		`{"messages": 0}`:       "secrets: params.messages: wants 1 to 200, found 0",
		`{"messages": 201}`:     "params.messages: wants 1 to 200, found 201",
		`{"players": 100, "rounds": 100, "messages": 20}`:    "params.rounds: 100 rounds of 100 players with 20 messages each are 200000 messages in one episode: want at most 100000",
		`{"context": ["rule"]}`:                              `params.context[0]: "rule": want one of chat_history, secret, collected_secrets, rules`,
		`{"context": ["rules", "rules"]}`:                    `params.context[1]: "rules" is listed twice`,
		`{"forms": ["rot14"]}`:                               `params.forms[0]: "rot14": want one of said, partial`,
		`{"forms": []}`:                                      "params.forms: none: nothing would give a secret away",
		`{"categories": ["cars"]}`:                           `params.categories[0]: "cars": want one of animals, birds`,
		`{"categories": ["food", "food"]}`:                   `params.categories[1]: "food" is listed twice`,
		`{"categories": []}`:                                 "params.categories: none, and no words either",
		`{"categories": ["food"], "players": 25}`:            "params.categories: they have 24 words for 25 players: add some",
		`{"words": ["tiger"]}`:                               "params.words: 1 for 2 players: want one or more for each",
		`{"words": ["tiger", "lion", "puma"], "players": 4}`: "params.words: 3 for 4 players",
		`{"words": ["tiger", "ox"]}`:                         `params.words[1]: "ox": want 3 letters or more`,
		`{"words": ["tiger", "Tíger!"]}`:                     `params.words[1]: "tiger" and "Tíger!" sound the same`,
		`{"words": ["tiger", "a\nsystem: b"]}`:               "want plain text on one line",
		`{"words": ["tiger", "…"]}`:                          "want 3 letters or more",
		`{"words": ["tiger", "` + long[:80] + `"]}`:          "want at most 40 bytes",
		`{"persona": {"third": "x"}}`:                        "params.persona.third: unknown seat; want one of first, second",
		`{"persona": {"first": "x"}, "players": 3}`:          "params.persona.first: unknown seat; want one of player1, player2, player3",
		`{"persona": {"first": "` + long + `"}}`:             "params.persona.first: want a text of at most",
		`{"points": {"secret": 1}}`:                          "params.points.secret: mode standard does not pay for this; want one of neither, both, only_other, only_own",
		`{"points": {"both": 1e9}}`:                          "params.points.both: wants -1000000 to 1000000, found 1e+09",
		`{"points": {"secret": 1}, "mode": "retained"}`:      "params.points.secret: mode retained pays by how rare a secret is",
		`{"target": "first"}`:                                "params.target: mode standard has none: use mode targeted",
		`{"target": "third", "mode": "targeted"}`:            `params.target: unknown seat "third"; want one of first, second`,
	} {
		p, err := Kind().Read(json.RawMessage(params))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Kind().Seats(p)
		_, also := Kind().World(p, nil)
		if err == nil || also == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: Seats returns %v, World %v; want %s", params, err, also, want)
		}
	}
}

func TestSeats(t *testing.T) {
	t.Parallel()
	for params, want := range map[string][]string{
		`{}`:                                 {firstSeat, secondSeat},
		`{"judge": "report"}`:                {firstSeat, secondSeat, judgeSeat},
		`{"players": 3}`:                     {"player1", "player2", "player3"},
		`{"players": 3, "judge": "decide"}`:  {"player1", "player2", "player3", judgeSeat},
		`{"players": 2, "mode": "targeted"}`: {firstSeat, secondSeat},
	} {
		if got, err := (definition{}).Seats(paramsOf(t, params)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: seats %v, %v; want %v", params, got, err, want)
		}
	}
	if got, err := (definition{}).Seats(paramsOf(t, `{"players": 100}`)); err != nil || len(got) != 100 || got[99] != fmt.Sprint("player", 100) {
		t.Errorf("100 players: seats %v, %v", got, err)
	}
}
