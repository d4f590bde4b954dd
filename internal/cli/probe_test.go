package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"parley/internal/ask/probe"
	"parley/internal/cli/exit"
)

// talker serves chat completions that always answer with text.
func talker(t *testing.T, text string) string {
	t.Helper()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"tiny","max_model_len":2048}]}`)
		case "/v1/chat/completions":
			b, _ := json.Marshal(text)
			fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":500}}`, b)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(ts.Close)
	return ts.URL
}

// TestProbe reads the report, and checks a plan with the entry that it prints.
func TestProbe(t *testing.T) {
	t.Parallel()
	url := talker(t, "Hello \x1b]0;title\x07 there.")
	got := parley(t, State{}, "models", "--probe", url).want(t, exit.OK)
	for _, text := range []string{"max_tokens obeyed", "the answer has 500 tokens, but the limit was 16", "2048 tokens", "use_max_tokens"} {
		if text == "use_max_tokens" == strings.Contains(got.stdout, text) {
			t.Errorf("%q:\n%s", text, got.stdout)
		}
	}
	if strings.Contains(got.stdout, "\x1b") || strings.Contains(got.stdout, "\x07") {
		t.Errorf("a control character:\n%q", got.stdout)
	}
	_, entry, ok := strings.Cut(got.stdout, "For a plan:\n\n")
	if !ok {
		t.Fatalf("no entry:\n%s", got.stdout)
	}
	plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 1\nlineup: {first: player, second: player}\n"+entry)
	parley(t, State{}, "check", plan).want(t, exit.OK)

	var r probe.Report
	js := parley(t, State{}, "models", "--probe", url+"/v1", "--json", "--model", "other").want(t, exit.OK)
	if err := json.Unmarshal([]byte(js.stdout), &r); err != nil || r.Model != "other" || r.Provider == nil || r.Provider.BaseURL != url+"/v1" {
		t.Errorf("%v\n%s", err, js.stdout)
	}
}

func TestProbeErrors(t *testing.T) {
	t.Parallel()
	sequential(t)
	parley(t, State{}, "models", "--probe", deadURL).want(t, exit.Failed).wantErr(t, "no server listens there")
	parley(t, State{}, "models", "--probe", "localhost:8000").want(t, exit.Misuse).wantErr(t, "http://")
	parley(t, State{}, "models", "--probe", deadURL, "--key-env", "NO_SUCH_VARIABLE").want(t, exit.Misuse).wantErr(t, "--key-env")
	parley(t, State{}, "models", "--probe", deadURL, "--timeout=-1s").want(t, exit.Misuse).wantErr(t, "--timeout")
	parley(t, State{}, "models", "--probe").want(t, exit.Misuse)

	none := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(none.Close)
	got := parley(t, State{}, "models", "--probe", none.URL, "--model", "m").want(t, exit.Failed)
	if !strings.Contains(got.stdout, "in none of the formats") {
		t.Errorf("%s", got.stdout)
	}
}

// TestProbeStops checks that the first signal ends it: nothing has to be drained.
func TestProbeStops(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	ts := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		signals <- os.Interrupt
		<-r.Context().Done()
	}))
	t.Cleanup(ts.Close)
	parley(t, State{Signals: signals}, "models", "--probe", ts.URL, "--timeout", "10m").want(t, exit.Interrupted)
}
