package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/llm"
)

func TestContentFaultsAreTheSameAgain(t *testing.T) {
	t.Parallel()
	m := model(t, Config{Faults: Faults{faultBadJSON: 0.5, FaultRefuse: 0.2}})
	bad, refused := 0, 0
	for i := range 200 {
		r := ask(t, m, structured(fmt.Sprint(i)))
		if again := ask(t, m, structured(fmt.Sprint(i))); again.Text != r.Text || again.Refusal != r.Refusal {
			t.Fatal("asked again, it says something else")
		}
		switch {
		case r.Refusal != "":
			refused++
			if r.Finish != llm.FinishRefused || r.Text != "" {
				t.Errorf("%+v", r)
			}
		case !json.Valid([]byte(r.Text)):
			bad++
			if !strings.Contains(r.Text, "order") {
				t.Errorf("%q", r.Text)
			}
		}
	}
	if bad < 60 || bad > 140 || refused < 20 || refused > 65 {
		t.Errorf("%d of 200 bad, %d refused", bad, refused)
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	m := model(t, Config{})
	bad := structured("x")
	bad.Schema.JSON = json.RawMessage(`{"type":"nothing"}`)
	for name, req := range map[string]*llm.Request{
		"nil": nil, "no messages": {Model: "sim/x"}, "bad schema": bad, "max": {Messages: []llm.Message{llm.User("x")}, MaxTokens: -1},
	} {
		if _, err := m.Ask(t.Context(), req); llm.KindOf(err) != llm.KindBadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkAsk(b *testing.B) {
	m := model(b, Config{})
	req := question("How do we cross the river before winter?")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Ask(context.Background(), req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAskStructured(b *testing.B) {
	m := model(b, Config{})
	req := structured("How do we cross the river before winter?")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Ask(context.Background(), req); err != nil {
			b.Fatal(err)
		}
	}
}
