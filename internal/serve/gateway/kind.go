package gateway

import (
	"encoding/json"
	"errors"

	"parley/world"
)

// Kind returns the kind of a gateway's episodes, for readers of a record. It cannot be played.
func Kind() world.Kind { return world.Define(definition{}) }

type definition struct{}

var _ world.Recorded = definition{}

func (definition) About() world.About {
	return world.About{Name: KindName, Version: version, Doc: "The record of a gateway: an episode for each session, a turn for each call."}
}

func (definition) Defaults() *params { return &params{} }

func (definition) Seats(*params) ([]string, error) { return []string{seat}, nil }

// World fails: other programs made the calls of a record.
func (definition) World(*params, world.Lineup) (world.World, error) {
	return nil, errors.New("gateway: it is a record of what programs asked, not a plan that can be played: serve it again with parley gateway")
}

// Hidden hides the bytes that clients got: the replies say the same.
func (definition) Hidden(n world.Note) bool { return n.Kind == wireKind }

// Closed returns why a session was closed, if its client said so.
func (definition) Closed(o world.Outcome) string {
	var end struct {
		Reason    string `json:"reason"`
		Mode      string `json:"mode"`
		Truncated bool   `json:"truncated"`
	}
	raw, _ := o.Data.(json.RawMessage)
	if json.Unmarshal(raw, &end) != nil {
		return o.Failed
	}
	why := end.Mode
	if end.Reason != "" {
		why += ": " + end.Reason
	}
	if end.Truncated {
		why += " (it had reached its step limit)"
	}
	return why
}
