package config

import (
	"errors"
	"flag"
	"fmt"

	"parley/world"
)

var update = flag.Bool("update", false, "write golden files anew")

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

func talk() world.Kind {
	return world.Kind{
		Name: "talk", Version: 1, Doc: "Two talk.",
		Params: func() any {
			return &talkParams{Mode: "standard", Messages: 6, Pause: 3, Style: style{Tone: "dry"}}
		},
		Seats: talkSeats,
		Scores: func(any) []world.Measure {
			return []world.Measure{{Name: "points", Seats: []string{"first", "second"}}, {Name: "length"}}
		},
		Bots: map[string]world.Bot{"echo": nil, "mute": nil},
		Example: `kind: talk
episodes: 2
agents:
  quiet: sim/small
params:
  mode: standard # standard or strict
  messages: 6
`,
	}
}

func talkSeats(params any) ([]string, error) {
	p, ok := params.(*talkParams)
	if !ok {
		return nil, fmt.Errorf("talk: params are a %T", params)
	}
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
func solo() world.Kind {
	return world.Kind{
		Name: "solo", Version: 1, Doc: "One plays alone.",
		Params:  func() any { return &struct{}{} },
		Seats:   func(any) ([]string, error) { return []string{"player"}, nil },
		Example: "kind: solo\nagents: {me: sim/small}\n",
	}
}

func testKinds() []world.Kind { return []world.Kind{solo(), talk()} }
