package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/llm"
)

// modelsCmd lists the known providers and the prices of their models.
type modelsCmd struct {
	Find   string `arg:"" optional:"" help:"List only names that contain this text."`
	Prices string `placeholder:"FILE" help:"${prices}"`

	JSON bool `name:"json" help:"Print JSON."`
}

// knownProvider is a preset, and whether its key is set. It never holds the key.
type knownProvider struct {
	Name    string `json:"name"`
	Dialect string `json:"dialect"`
	BaseURL string `json:"base_url,omitempty"`
	Example string `json:"base_url_form,omitempty"` // where the address differs by account
	KeyEnv  string `json:"key_env,omitempty"`
	KeySet  bool   `json:"key_set"`
	Command string `json:"key_command,omitempty"` // the program that prints the key
	// Credentials says whose credentials give the key.
	Credentials provider.Credentials `json:"credentials,omitempty"`
	Tried       string               `json:"tried_with,omitempty"` // never its real endpoint; empty: nothing
}

// knownModel is a model with its prices in dollars per million tokens.
type knownModel struct {
	Name        string    `json:"name"`
	Input       llm.Money `json:"input"`
	Cached      llm.Money `json:"cached"`
	Output      llm.Money `json:"output"`
	BatchInput  llm.Money `json:"batch_input,omitempty"`
	BatchOutput llm.Money `json:"batch_output,omitempty"`
	Context     int       `json:"context,omitempty"`
	MaxOutput   int       `json:"max_output,omitempty"`
	Retired     bool      `json:"retired,omitempty"`
}

// modelList holds both lists.
type modelList struct {
	Providers []knownProvider `json:"providers"`
	AsOf      string          `json:"prices_as_of"`
	Models    []knownModel    `json:"models"`
}

// Run prints the tables.
func (c *modelsCmd) Run(_ context.Context, s *State) error {
	prices := price.Embedded()
	if c.Prices != "" {
		own, err := price.Load(c.Prices)
		if err != nil {
			return exit.Usagef("--prices: %w", err)
		}
		prices = prices.With(own)
	}
	k := c.known(s, prices)
	if c.JSON {
		return terminal.PrintJSON(s.Stdout, k)
	}
	return k.print(s.Stdout)
}

func (c *modelsCmd) known(s *State, prices *price.Table) modelList {
	k := modelList{AsOf: prices.AsOf(), Providers: []knownProvider{}, Models: []knownModel{}}
	for _, p := range provider.Presets() {
		if !strings.Contains(p.Name, c.Find) && !strings.HasPrefix(c.Find, p.Name+"/") {
			continue
		}
		v, ok := s.Env(p.KeyEnv)
		k.Providers = append(k.Providers, knownProvider{
			Name: p.Name, Dialect: p.Dialect, BaseURL: p.BaseURL, Example: p.Example, KeyEnv: p.KeyEnv,
			KeySet: p.KeyEnv != "" && ok && v != "", Command: provider.CommandLine(p.KeyCommand), Credentials: p.Credentials, Tried: p.Tried,
		})
	}
	for _, name := range prices.Models() {
		p, ok := prices.Find(name)
		if !ok || !strings.Contains(name, c.Find) {
			continue
		}
		k.Models = append(k.Models, knownModel{
			Name: name, Input: p.Input, Cached: p.Cached, Output: p.Output,
			BatchInput: p.Batch.Input, BatchOutput: p.Batch.Output, Context: p.Context, MaxOutput: p.MaxOutput, Retired: p.Retired,
		})
	}
	return k
}

func (k modelList) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(k.Providers) > 0 {
		fmt.Fprintln(t, "PROVIDER\tDIALECT\tKEY\tTRIED WITH\tADDRESS")
	}
	for _, p := range k.Providers {
		key, address := "none needed", p.BaseURL
		switch {
		case p.KeySet:
			key = p.KeyEnv + " (set)"
		case p.KeyEnv != "":
			key = p.KeyEnv + " (not set)"
		case p.Command != "":
			key = p.Command
		case p.Credentials != "":
			key = "Google's credentials"
		case p.Dialect == "bedrock":
			key = "AWS credentials, or a key"
		}
		switch {
		case p.Example != "":
			address = "yours: " + p.Example
		case address == "":
			address = "built in"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.Dialect, key, cmp.Or(p.Tried, "nothing"), address)
	}
	switch {
	case len(k.Models) == 0 && len(k.Providers) == 0:
		fmt.Fprintln(t, "no provider and no model with a known price matches; parley models lists all of them")
		return t.Flush()
	case len(k.Models) == 0:
		fmt.Fprintln(t, "\nno model of that name has a known price")
		return t.Flush()
	case len(k.Providers) > 0:
		fmt.Fprintln(t)
	}
	fmt.Fprintf(t, "MODEL\tINPUT\tCACHED\tOUTPUT\tBATCH IN\tBATCH OUT\tCONTEXT\tMAX OUTPUT\n")
	for _, m := range k.Models {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.Input, m.Cached, m.Output,
			terminal.OrDash(m.BatchInput.String(), m.BatchInput == 0), terminal.OrDash(m.BatchOutput.String(), m.BatchOutput == 0),
			terminal.OrDash(terminal.Number(m.Context), m.Context == 0), terminal.OrDash(terminal.Number(m.MaxOutput), m.MaxOutput == 0))
	}
	fmt.Fprintf(t, "\nDollars for a million tokens, as of %s.\n", k.AsOf)
	return t.Flush()
}
