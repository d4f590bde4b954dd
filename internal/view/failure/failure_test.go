package failure

import (
	"strings"
	"testing"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestEveryKindHasARemedy: there is advice for every kind of failure.
func TestEveryKindHasARemedy(t *testing.T) {
	t.Parallel()
	for _, k := range llm.Kinds() {
		if Remedy("lab/tiny", k, 0, "") == "" || Remedy("", k, 0, "") == "" || Remedy("person", k, 0, "") == "" {
			t.Errorf("%s has no remedy", k)
		}
	}
	if f := newFailure("", &llm.Error{Kind: llm.KindRaised, Message: "w.py:3: ValueError: no"}); strings.Contains(f.Remedy, "server") || f.String() != "0 raised (code outside of the world)" {
		t.Errorf("%s: %s", f, f.Remedy)
	}
	for said, want := range map[string]string{
		"This model's maximum context length is 2,048 tokens. However": "the model's context is 2,048 tokens",
		"the request exceeds the available context size (512 tokens)":  "the model's context is 512 tokens",
		"prompt is too long: 9000 tokens":                              "the prompt does not fit",
	} {
		if got := Remedy("lab/tiny", llm.KindTooLong, 0, said); len(got) < len(want) || got[:len(want)] != want {
			t.Errorf("%q: %s", said, got)
		}
	}
}

// TestRemedyOfPerson: no setting of a provider helps a person who is late.
func TestRemedyOfPerson(t *testing.T) {
	t.Parallel()
	f := Of(&journal.Replied{Agent: "me", Request: &llm.Request{Model: world.Human}, Error: &llm.Error{Kind: llm.KindTimeout, Message: "me did not answer within 1h0m0s"}})
	if f.Model != "person" || !strings.Contains(f.Remedy, "deadline") || !strings.Contains(f.Remedy, "fallback") || strings.Contains(f.Remedy, "provider") {
		t.Errorf("%+v", f)
	}
}
