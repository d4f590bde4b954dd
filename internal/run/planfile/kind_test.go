package planfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/world"
	"parley/world/worldtest"
)

// talkParams are the params of a kind made for these tests. They have one of everything.
type talkParams struct {
	Mode     string             `json:"mode" doc:"How the two talk." oneof:"standard,strict"`
	Messages int                `json:"messages" doc:"How many messages are sent."`
	Judge    bool               `json:"judge" doc:"Whether somebody listens."`
	Topics   []string           `json:"topics,omitempty" doc:"What about."`
	Weights  map[string]float64 `json:"weights,omitempty"`
	Pause    int                `json:"pause,omitempty"`
	Style    style              `json:"style"`
}

type style struct {
	Tone  string `json:"tone"`
	Words *uint8 `json:"words,omitempty"`
}

func talk() worldtest.Simple[talkParams] {
	return worldtest.Simple[talkParams]{
		Kind: world.About{
			Name: "talk", Version: 1, Doc: "Two talk.",
			Example: `kind: talk
episodes: 2
agents:
  quiet: sim/small
params:
  mode: standard # standard or strict
  messages: 6
`,
		},
		Params:  talkParams{Mode: "standard", Messages: 6, Pause: 3, Style: style{Tone: "dry"}},
		SeatsOf: talkSeats,
		Scores:  []world.Measure{{Name: "points", Seats: []string{"first", "second"}}, {Name: "length"}},
		Players: map[string]world.Bot{"echo": nil, "mute": nil},
	}
}

func talkSeats(p *talkParams) ([]string, error) {
	var errs []error
	if p.Messages < 1 {
		errs = append(errs, fmt.Errorf("talk: params.messages: must be at least 1, not %d", p.Messages))
	}
	if p.Style.Tone == "" {
		errs = append(errs, errors.New("talk: params.style.tone: must not be empty"))
	}
	if p.Mode == "strict" && p.Judge {
		errs = append(errs, errors.New("talk: nobody judges in strict mode"))
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	seats := []string{"first", "second"}
	if p.Judge {
		seats = append(seats, "judge")
	}
	return seats, nil
}

// solo is a second kind: one seat, no params, no bots.
func solo() worldtest.Simple[struct{}] {
	return worldtest.Simple[struct{}]{
		Kind: world.About{Name: "solo", Version: 1, Doc: "One plays alone.", Example: "kind: solo\nagents: {me: sim/small}\n"},
		Sits: []string{"player"},
	}
}

func testKinds() []world.Kind { return []world.Kind{world.Define(solo()), world.Define(talk())} }

// TestSeatsHaveNames: a kind that makes a seat twice, or one without a name, is refused, in every cell of a matrix too.
func TestSeatsHaveNames(t *testing.T) {
	t.Parallel()
	kind := talk()
	kind.SeatsOf = func(p *talkParams) ([]string, error) {
		return map[int][]string{1: {"a", ""}, 2: {"a", "b", "a"}, 3: {"a", "b"}}[p.Messages], nil
	}
	for params, want := range map[string]string{
		"params: {messages: 1}": "seat 2 has no name",
		"params: {messages: 2}": `makes the seat "a" twice`,
		"params: {messages: 3}": "",
		"params: {messages: 3}\nplan: {matrix: {params: {messages: [3, 2]}}}": `makes the seat "a" twice`,
	} {
		_, err := Parse("p.yaml", []byte("kind: talk\nagents: {x: sim/small}\nlineup: {a: x, b: x}\n"+params+"\n"), []world.Kind{world.Define(kind)}, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", params, err, want)
		}
	}
}
