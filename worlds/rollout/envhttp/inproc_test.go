package envhttp

import (
	"encoding/json"
	"testing"

	"parley/llm"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/rules"
)

// odd panics at every step.
type odd struct{}

func (odd) Reset(int64) {}

func (odd) Prompt() rules.Prompt { return nil }

func (odd) Step(rules.Action) rules.Result { panic("odd") }

func TestSessions(t *testing.T) {
	t.Parallel()
	h := &localHost{kinds: append(env.Standard(), env.Kind{Name: "odd", New: func(json.RawMessage) (env.Env, error) { return odd{}, nil }})}
	for _, c := range []struct {
		env, params string
		open, step  llm.Kind
	}{
		{"word", `{"word":"river"}`, "", ""},
		{"word", `{"word":"x"}`, llm.KindBadRequest, llm.KindServer},
		{"chess", `{}`, llm.KindBadRequest, llm.KindServer},
		{"odd", `{}`, "", llm.KindServer},
	} {
		s := h.New("1", rules.Opening{Env: c.env, Params: json.RawMessage(c.params)})
		if _, err := s.Reset(t.Context(), 1); llm.KindOf(err) != c.open {
			t.Errorf("%s: %v", c.env, err)
		}
		if _, err := s.Step(t.Context(), "", rules.Action{rules.DefaultAgent: llm.Assistant("river")}); llm.KindOf(err) != c.step {
			t.Errorf("%s: %v", c.env, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := h.Check(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
