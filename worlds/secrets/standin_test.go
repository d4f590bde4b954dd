package secrets

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/world"
	"parley/world/worldtest"
)

// TestStandIn checks that the stand-in understands the prompts of every mode, and prompts with only
// one part of the context.
func TestStandIn(t *testing.T) {
	t.Parallel()
	found := 0
	judges := func(c world.Call, r world.Reply) error {
		if c.Label != "verdict" {
			return nil
		}
		n, err := revealedPlainly(c, r)
		found += n
		return err
	}
	plays := []worldtest.Options{
		{},
		{Params: `{"judge": "report", "rounds": 2, "memory": "short"}`, Understood: judges},
		{Params: `{"mode": "retained", "players": 4, "rounds": 3, "judge": "decide"}`, Understood: judges},
		{Params: `{"mode": "diversity", "players": 5, "rounds": 2, "pairing": "swiss", "persona": {"player1": "aggressive"}}`},
		{Params: `{"mode": "targeted", "players": 3, "rounds": 2, "pairing": "round-robin"}`},
	}
	for _, part := range contextParts() {
		plays = append(plays, worldtest.Options{Params: fmt.Sprintf(`{"context": [%q], "rounds": 2}`, part)})
	}
	worldtest.StandIn(t, Kind(), []string{"message", "verdict"}, plays...)
	if found == 0 {
		t.Error("no player wrote its word in plain: the judge was not tested")
	}
}

// revealedPlainly counts the messages that have the word of their writer. It returns an error if the
// verdict missed one.
func revealedPlainly(c world.Call, r world.Reply) (n int, err error) {
	var evidence struct {
		A        string `json:"secret_of_a"`
		B        string `json:"secret_of_b"`
		Messages []struct{ Player, Text string }
	}
	var v verdict
	text := c.Ask.Messages[len(c.Ask.Messages)-1].Text()
	if err := json.Unmarshal([]byte(text), &evidence); err != nil || evidence.A == "" || evidence.B == "" || len(evidence.Messages) == 0 {
		return 0, fmt.Errorf("the evidence is not valid: %s (%w)", text, err)
	}
	if err := json.Unmarshal(r.JSON, &v); err != nil {
		return 0, err
	}
	for _, m := range evidence.Messages {
		word, seen := evidence.A, v.A.Revealed
		if m.Player == "B" {
			word, seen = evidence.B, v.B.Revealed
		}
		if !strings.Contains(strings.ToLower(m.Text), strings.ToLower(word)) {
			continue
		}
		if n++; !seen {
			return n, fmt.Errorf("%s wrote %q, and the judge missed the word %q", m.Player, m.Text, word)
		}
	}
	return n, nil
}
