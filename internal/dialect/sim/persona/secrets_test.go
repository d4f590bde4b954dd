package persona

import (
	"strings"
	"testing"

	"parley/llm"
)

func request(system string, talk ...string) *llm.Request {
	req := &llm.Request{Messages: []llm.Message{llm.System(system)}}
	for i, text := range talk {
		role := llm.RoleUser
		if (len(talk)-1-i)%2 == 1 {
			role = llm.RoleAssistant
		}
		req.Messages = append(req.Messages, llm.Text(role, text))
	}
	return req
}

const rules = "You are a player.\n\nYour secret: tiger\n\nWrite."

func TestSecretsKnowsItsGame(t *testing.T) {
	t.Parallel()
	for _, req := range []*llm.Request{
		{}, request("You are helpful.", "hi"), {Messages: []llm.Message{llm.User("Your secret: tiger")}}, request("Your secret: \n", "hi"),
	} {
		if text, ok := Secrets("small", req, 1); ok {
			t.Errorf("%+v is answered with %q", req.Messages, text)
		}
	}
}

// told is the share of a thousand messages that give the word away.
func told(model string, req *llm.Request) float64 {
	n := 0
	for seed := range uint64(1000) {
		text, ok := Secrets(model, req, seed)
		if !ok || text == "" {
			return -1
		}
		if strings.Contains(text, "tiger") || strings.Contains(text, "t-i-g-e-r") {
			n++
		}
	}
	return float64(n) / 1000
}

func TestSecretsRates(t *testing.T) {
	t.Parallel()
	small, medium, large := told("small", request(rules, "Hi.")), told("medium", request(rules, "Hi.")), told("large", request(rules, "Hi."))
	if !(large > 0 && large < medium && medium < small && small < 0.4) {
		t.Errorf("small %v, medium %v, large %v", small, medium, large)
	}
	bold, quiet := told("medium", request("Be bold.\n"+rules, "Hi.")), told("medium", request("Be quiet.\n"+rules, "Hi."))
	if !(quiet > 0 && quiet < medium && medium < bold) {
		t.Errorf("quiet %v, medium %v, bold %v", quiet, medium, bold)
	}
	if heard := told("medium", request(rules, "Hi.", "My secret is zebra.")); heard <= medium {
		t.Errorf("heard a secret %v, heard none %v", heard, medium)
	}
}

func TestSecretsIsPureAndVaried(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, talk := range [][]string{{"Go."}, {"Hi.", "My word is zebra."}, {"Go.", "Hello.", "Hm."}} {
		for seed := range uint64(300) {
			text, _ := Secrets("small", request(rules, talk...), seed)
			if again, _ := Secrets("small", request(rules, talk...), seed); again != text {
				t.Fatalf("%q, then %q", text, again)
			}
			if strings.Contains(text, "%!") {
				t.Errorf("a broken line: %q", text)
			}
			seen[text] = true
		}
	}
	if len(seen) < 15 {
		t.Errorf("only %d different lines", len(seen))
	}
	if text, _ := Secrets("small", request("Your secret: 100%s\nBe bold.", "Hi."), 3); strings.Contains(text, "%!") {
		t.Errorf("a broken line: %q", text)
	}
}
