package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

func TestModels(t *testing.T) {
	t.Parallel()
	prices := write(t, "prices.json", `{"as_of":"2026-11-01","models":{"lab/big":{"input":2,"output":8}}}`)
	s := State{Env: func(name string) (string, bool) { return "x", name == "OPENAI_API_KEY" }}
	golden(t, "models-openai-key", providersOf(parley(t, s, "models", "--prices", prices).want(t, exit.OK).stdout))
	golden(t, "models-find", parley(t, s, "models", "lab/", "--prices", prices).want(t, exit.OK).stdout)
	parley(t, s, "models", "--prices", "nowhere.json").want(t, exit.Misuse).wantErr(t, "--prices", "nowhere.json")
}

// providersOf returns only the first table: the prices change too often for a golden file.
func providersOf(text string) string {
	first, _, _ := strings.Cut(text, "\n\n")
	return first + "\n"
}

func TestModelsJSON(t *testing.T) {
	t.Parallel()
	got := parley(t, State{}, "models", "--json").want(t, exit.OK)
	var k modelList
	if err := json.Unmarshal([]byte(got.stdout), &k); err != nil {
		t.Fatal(err)
	}
	if len(k.Providers) == 0 || len(k.Models) == 0 || k.AsOf == "" {
		t.Errorf("%+v", k)
	}
}

// TestModelsLive lists what an account can use, with the prices that are known.
func TestModelsLive(t *testing.T) {
	t.Parallel()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[{"id":"big"},{"id":"odd","context_window":77}]}`)
	}))
	t.Cleanup(front.Close)
	prices := write(t, "prices.json", `{"as_of":"2026-11-01","models":{"lab/big":{"input":2,"output":8,"retired":true}}}`)
	args := []string{"models", "--live", "lab", "--base-url", front.URL + "/v1", "--prices", prices}
	parley(t, State{}, args...).want(t, exit.OK).wantOut(t, "lab/big", "$2.00", "lab/odd", "unpriced", "77")
	var k modelList
	if err := json.Unmarshal([]byte(parley(t, State{}, append(args, "--json")...).want(t, exit.OK).stdout), &k); err != nil {
		t.Fatal(err)
	}
	if len(k.Models) != 2 || !k.Models[0].Retired || !k.Models[1].Unpriced || k.Models[0].Unpriced {
		t.Errorf("%+v", k.Models)
	}
	parley(t, State{}, "models", "--live", "nobody").want(t, exit.Misuse).wantErr(t, "--live nobody", "--base-url")
	parley(t, State{}, append(args, "--key-command", "false x")...).want(t, exit.Failed).wantErr(t, "key_command false x")
	parley(t, State{}, "models", "--key-command", "cat x").want(t, exit.Misuse).wantErr(t, "--live")
	parley(t, State{}, "models", "--api-version", "2024-10-21").want(t, exit.Misuse).wantErr(t, "--live")
	parley(t, State{}, "models", "--base-url", front.URL).want(t, exit.Misuse).wantErr(t, "--live")
	parley(t, State{}, "models", "--live", "sim").want(t, exit.Misuse).wantErr(t, "no server")
	none := State{Env: func(string) (string, bool) { return "", false }}
	parley(t, none, "models", "--live", "openai").want(t, exit.Misuse).wantErr(t, "OPENAI_API_KEY")
}

// TestModelsUpdate says what a newer file of prices changes.
func TestModelsUpdate(t *testing.T) {
	t.Parallel()
	old := write(t, "old.json", `{"models":{"lab/a":{"input":2,"output":8},"lab/b":{"input":1,"output":2}}}`)
	newer := write(t, "newer.json", `{"models":{"lab/a":{"input":3,"output":8}}}`)
	parley(t, State{}, "models", "--prices", old, "--update", newer).want(t, exit.OK).wantOut(t, "lab/a", "changed", "$2.00", "$3.00", "lab/b", "gone", "--prices")
	parley(t, State{}, "models", "--prices", newer, "--update", newer).want(t, exit.OK).wantOut(t, "nothing changes")
	parley(t, State{}, "models", "--update", "nowhere.json").want(t, exit.Misuse).wantErr(t, "--update", "nowhere.json")
}

// TestAtSim lists the models of the simulated server in the formats of the vendors, and asks at Azure's older paths.
func TestAtSim(t *testing.T) {
	t.Parallel()
	s := State{Env: os.LookupEnv} // PATH stands for a key: it is always set
	url, stop := serves(t, nil, "sim")
	defer stop()
	for want, args := range map[string][]string{
		"gemini/small": {"gemini", "--base-url", url + "/v1beta"}, "bedrock/sim.small": {"bedrock", "--base-url", url, "--key-env", "PATH"}, "azure/sim/small": {"azure", "--base-url", url + "/openai/v1"},
	} {
		parley(t, s, append([]string{"models", "--live"}, args...)...).want(t, exit.OK).wantOut(t, want)
	}
	parley(t, s, "models", "--live", "azure", "--base-url", url+"/openai", "--api-version", "2024-10-21").want(t, exit.OK).wantOut(t, "azure/sim/small")
	vertex := url + "/v1/projects/p/locations/r/publishers/google"
	parley(t, s, "models", "--live", "vertex", "--base-url", vertex, "--key-env", "PATH").want(t, exit.Failed).wantErr(t, "Model Garden")
	ask := []string{"ask", "--model", "azure/any", "--base-url", url + "/openai", "--quiet"}
	parley(t, s, append(ask, "--api-version", "2024-10-21", "Hello")...).want(t, exit.OK)
	parley(t, s, append(ask, "--api-version", "soon", "Hello")...).want(t, exit.Misuse).wantErr(t, "api_version", "2024-10-21")
}
