package app

import (
	"errors"
	"os"
	"testing"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/internal/ask/trust"
	"parley/llm"
)

// TestLaneNeedsTrust: an app that is opened without trust settings sends no key to another
// machine. PATH stands for the key: it is always set.
func TestLaneNeedsTrust(t *testing.T) {
	t.Parallel()
	p := provider.Provider{Name: "lab", Dialect: "openai", BaseURL: "https://lab.example/v1", KeyEnv: "PATH"}
	if os.Getenv("PATH") == "" {
		t.Skip("PATH is not set")
	}
	given := &trust.Gate{}
	given.Give(trust.Keys(p)...)
	for gate, ok := range map[*trust.Gate]bool{nil: false, {}: false, given: true} {
		a, err := Open(Config{Config: dispatch.Config{Settings: settings.New(settings.Library)}, Providers: []provider.Provider{p}, Trust: gate})
		if err != nil {
			t.Fatal(err)
		}
		err = a.Ready("lab/any")
		_, refused := errors.AsType[*trust.RefusedError](err)
		if (err == nil) != ok || refused == ok || !ok && llm.AsError(err).Kind != llm.KindAuth {
			t.Errorf("%v: want allowed %v", err, ok)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}
