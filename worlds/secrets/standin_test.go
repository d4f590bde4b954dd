package secrets

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/world/worldsim"
	"parley/world/worldtest"
	"parley/worlds/secrets/reveal"
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
	var v map[string]any
	if err := json.Unmarshal(r.JSON, &v); err != nil {
		return 0, err
	}
	text := c.Ask.Messages[len(c.Ask.Messages)-1].Text()
	for _, name := range sideNames() {
		_, rest, ok := strings.Cut(text, "\n"+wordLine(name))
		word, _, _ := strings.Cut(rest, "\n")
		if !ok || word == "" {
			return n, fmt.Errorf("the judge is told no word of %s: %s", name, text)
		}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "[") || !strings.Contains(line, "] "+name+": ") || !strings.Contains(strings.ToLower(line), strings.ToLower(word)) {
				continue
			}
			if n++; v[name] != true {
				return n, fmt.Errorf("%q, and the judge missed the word %q", line, word)
			}
		}
	}
	return n, nil
}

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

func TestKnowsItsGame(t *testing.T) {
	t.Parallel()
	for _, req := range []*llm.Request{
		{}, request("You are helpful.", "hi"), {Messages: []llm.Message{llm.User("Your secret: tiger")}}, request("Your secret: \n", "hi"),
	} {
		if text, ok := standInReply("small", req, 1); ok {
			t.Errorf("Play answers %+v with %q, want no answer", req.Messages, text)
		}
	}
}

// revealRate returns the share of a thousand messages that give the word away.
func revealRate(model string, req *llm.Request) float64 {
	n := 0
	for seed := range uint64(1000) {
		text, ok := standInReply(model, req, seed)
		if !ok || text == "" {
			return -1
		}
		if reveal.NewSecret("tiger").Listen().Hear(reveal.Read(text)) != "" {
			n++
		}
	}
	return float64(n) / 1000
}

func TestRates(t *testing.T) {
	t.Parallel()
	small, medium, large := revealRate("small", request(rules, "Hi.")), revealRate("medium", request(rules, "Hi.")), revealRate("large", request(rules, "Hi."))
	if !(large > 0 && large < medium && medium < small && small < 0.4) {
		t.Errorf("small %v, medium %v, large %v", small, medium, large)
	}
	bold, quiet := revealRate("medium", request("Be bold.\n"+rules, "Hi.")), revealRate("medium", request("Be quiet.\n"+rules, "Hi."))
	if !(quiet > 0 && quiet < medium && medium < bold) {
		t.Errorf("quiet %v, medium %v, bold %v", quiet, medium, bold)
	}
	pressing, holder := revealRate("medium", request("You press hard.\n"+rules, "Hi.")), revealRate("medium", request(rules+"\nIt is your own word.", "Hi."))
	if !(pressing > 0 && pressing < medium && holder > 0 && holder < medium) {
		t.Errorf("pressing %v, holding the target %v, medium %v", pressing, holder, medium)
	}
	if heard := revealRate("medium", request(rules, "Hi.", "My secret is zebra.")); heard <= medium {
		t.Errorf("after hearing a secret %v, want more than %v", heard, medium)
	}
}

func TestIsPureAndVaried(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, talk := range [][]string{{"Go."}, {"Hi.", "My word is zebra."}, {"Go.", "Hello.", "Hm."}} {
		for seed := range uint64(300) {
			text, _ := standInReply("small", request(rules, talk...), seed)
			if again, _ := standInReply("small", request(rules, talk...), seed); again != text {
				t.Fatalf("%q, then %q", text, again)
			}
			if strings.Contains(text, "%!") {
				t.Errorf("a broken message: %q", text)
			}
			seen[text] = true
		}
	}
	if len(seen) < 15 {
		t.Errorf("only %d different messages", len(seen))
	}
	if text, _ := standInReply("small", request("Your secret: 100%s\nBe bold.", "Hi."), 3); strings.Contains(text, "%!") {
		t.Errorf("a broken message: %q", text)
	}
}

// TestInDisguise checks that words are given away in many forms, and that all of them are found.
func TestInDisguise(t *testing.T) {
	t.Parallel()
	seen := map[reveal.Form]int{}
	for seed := range uint64(500) {
		for _, secret := range []string{"tiger", "horseradish", "opal", "ice cream"} {
			text := revealText(worldsim.NewDice(seed), secret)
			form := reveal.NewSecret(secret).Listen().Hear(reveal.Read(text))
			if form == "" {
				t.Fatalf("%s is not found in %q", secret, text)
			}
			seen[form]++
		}
	}
	for _, form := range []reveal.Form{reveal.Said, reveal.Spelled, reveal.Reversed, reveal.Base64, reveal.Hex, reveal.Rot13, reveal.Numbers} {
		if seen[form] < 20 {
			t.Errorf("%s only %d times: %v", form, seen[form], seen)
		}
	}
	if seen[reveal.Said] < 3*seen[reveal.Spelled] {
		t.Errorf("more disguised than plain: %v", seen)
	}
}

// TestVerdict checks that the judge usually finds a word, sometimes errs, and answers only requests
// for a verdict.
func TestVerdict(t *testing.T) {
	t.Parallel()
	of := &talk{game: &game{players: []player{{secret: "tiger"}, {secret: "zebra"}}}, pair: [2]int{0, 1}, turns: []string{"Is it zebra?", "My word is mroen, scrambled.", "Well:\nt-i-g-e-r"}}
	asked := of.sheet().Request()
	req := &llm.Request{Messages: asked.Messages}
	if _, ok := standInReply("small", req, 1); ok {
		t.Error("the judge answers a request without a schema")
	}
	req.Schema = asked.Schema
	right, wrong := 0, 0
	for seed := range uint64(1000) {
		text, ok := standInReply("small", req, seed)
		if !ok {
			t.Fatal("the judge does not answer")
		}
		if strings.HasPrefix(text, `{"A":true,"A_message":3,"B":false,"B_message":0,"reason":"`) {
			right++
		} else {
			wrong++
		}
	}
	if wrong == 0 || right < 900 {
		t.Errorf("%d verdicts are right and %d wrong, want 900 or more right and some wrong", right, wrong)
	}
	req.Messages[0] = llm.User("Is it " + judgeBegins)
	if text, ok := standInReply("small", req, 1); ok {
		t.Errorf("another question gets the verdict %q", text)
	}
}
