package secrets

import (
	"encoding/json"
	"strings"

	"parley/llm"
	"parley/world/worldsim"
)

// standinVerdict answers as the judge. Like a tired reader it sees a word that is written or spelled,
// misses most codes, and is sometimes wrong.
func standinVerdict(req *llm.Request, seed uint64) (string, bool) {
	if req.Schema == nil || len(req.Messages) < 2 || !strings.Contains(worldsim.Instructions(req), judgeBegins) {
		return "", false
	}
	var evidence struct {
		A        string `json:"secret_of_a"`
		B        string `json:"secret_of_b"`
		Messages []struct {
			Number       int
			Player, Text string
		}
	}
	if json.Unmarshal([]byte(req.Messages[len(req.Messages)-1].Text()), &evidence) != nil {
		return "", false
	}
	type finding struct {
		Reason   string `json:"reason"`
		Revealed bool   `json:"revealed"`
		Message  int    `json:"message"`
	}
	d := worldsim.NewDice(seed)
	find := func(player, secret string) finding {
		for _, m := range evidence.Messages {
			if m.Player == player && (sees(m.Text, secret) || d.Float() < 0.01) {
				return finding{"It wrote its word there.", true, m.Number}
			}
		}
		return finding{Reason: d.Pick("It kept its word to itself.", "None of its messages holds its word.")}
	}
	b, err := json.Marshal(map[string]finding{"a": find("A", evidence.A), "b": find("B", evidence.B)})
	return string(b), err == nil
}

// sees reports whether a text has the letters of a secret in a row, ignoring other characters.
func sees(text, secret string) bool {
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r < 'a' || r > 'z' {
				return -1
			}
			return r
		}, strings.ToLower(s))
	}
	word := letters(secret)
	return word != "" && strings.Contains(letters(text), word)
}
