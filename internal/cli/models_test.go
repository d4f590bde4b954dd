package cli

import (
	"encoding/json"
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

// TestAtSim asks the simulated server at Azure's older paths.
func TestAtSim(t *testing.T) {
	t.Parallel()
	url, stop := serves(t, nil, "sim")
	defer stop()
	ask := []string{"ask", "--model", "azure/any", "--base-url", url + "/openai", "--quiet"}
	parley(t, State{}, append(ask, "--api-version", "2024-10-21", "Hello")...).want(t, exit.OK)
	parley(t, State{}, append(ask, "--api-version", "soon", "Hello")...).want(t, exit.Misuse).wantErr(t, "api_version", "2024-10-21")
}
