package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"parley/internal/ask/dialect"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/llm"
)

// modelsCmd lists the known providers and the prices of their models.
type modelsCmd struct {
	Find   string `arg:"" optional:"" help:"List only names that contain this text."`
	Prices string `placeholder:"FILE" help:"File of prices that override the built-in ones."`
	Update string `placeholder:"FILE" help:"Newer file of prices, ours or LiteLLM's: print what it changes instead of the lists."`

	Live       string `placeholder:"PROVIDER" help:"Ask this provider which models the account can use, and list these."`
	BaseURL    string `name:"base-url" placeholder:"URL" help:"Base URL of the provider of --live."`
	KeyEnv     string `placeholder:"NAME" help:"Environment variable with the API key of the provider of --live or --probe. Default for --probe: send no key."`
	KeyCommand string `placeholder:"COMMAND" help:"Program that prints the API key of the provider of --live, and its arguments, separated by spaces. No shell reads it. Instead of --key-env."`
	Dialect    string `placeholder:"NAME" help:"Wire format of the provider of --live. Default: that of a known provider, else openai."`
	APIVersion string `name:"api-version" placeholder:"VERSION" help:"Version of Azure's older paths, such as 2024-10-21. --base-url then ends in /openai."`

	Probe   string        `group:"probe" placeholder:"URL" help:"Test what the model server at this base URL supports, and print its entry for a plan. The URL is everything before /chat/completions, such as http://localhost:8000/v1."`
	Model   string        `group:"probe" placeholder:"NAME" help:"The model to ask. Default: the first one that the server lists."`
	Timeout time.Duration `group:"probe" placeholder:"DURATION" help:"Maximum time for each question. Default: 30s."`

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
	Unpriced    bool      `json:"unpriced,omitempty"` // of --live: the account has it, and its price is not known
}

// modelList holds both lists.
type modelList struct {
	Providers []knownProvider `json:"providers"`
	AsOf      string          `json:"prices_as_of"`
	Models    []knownModel    `json:"models"`
}

// Run prints the tables.
func (c *modelsCmd) Run(ctx context.Context, s *State) error {
	if c.Probe != "" {
		if c.Find+c.Prices+c.Update+c.Live+c.BaseURL+c.KeyCommand+c.Dialect+c.APIVersion != "" {
			return exit.Usagef("--probe goes with --key-env, --model, --timeout and --json only")
		}
		return c.probe(ctx, s)
	}
	if c.Model != "" || c.Timeout != 0 {
		return exit.Usagef("--model and --timeout are for --probe")
	}
	if c.Live == "" && (c.BaseURL != "" || c.KeyEnv != "" || c.KeyCommand != "" || c.Dialect != "" || c.APIVersion != "") {
		return exit.Usagef("--base-url, --key-env, --key-command, --dialect and --api-version are for the provider of --live: name it with --live")
	}
	if c.Live != "" && c.Update != "" {
		return exit.Usagef("--live and --update do not go together")
	}
	prices := price.Embedded()
	if c.Prices != "" {
		own, err := price.Load(c.Prices)
		if err != nil {
			return exit.Usagef("--prices: %w", err)
		}
		prices = prices.With(own)
	}
	if c.Update != "" {
		return c.update(s, prices)
	}
	k := c.known(s, prices)
	if c.Live != "" {
		var err error
		if k, err = c.live(ctx, s, prices); err != nil {
			return err
		}
	}
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
			KeySet: p.KeyEnv != "" && ok && v != "", Command: provider.CommandLine(p.KeyCommand), Credentials: p.Credentials,
		})
	}
	for _, name := range prices.Models() {
		p, ok := prices.Find(name)
		if !ok || !strings.Contains(name, c.Find) {
			continue
		}
		k.Models = append(k.Models, pricedModel(name, p))
	}
	return k
}

func pricedModel(name string, p price.Price) knownModel {
	return knownModel{
		Name: name, Input: p.Input, Cached: p.Cached, Output: p.Output,
		BatchInput: p.Batch.Input, BatchOutput: p.Batch.Output, Context: p.Context, MaxOutput: p.MaxOutput, Retired: p.Retired,
	}
}

func (k modelList) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(k.Providers) > 0 {
		fmt.Fprintln(t, "PROVIDER\tDIALECT\tKEY\tADDRESS")
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
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", p.Name, p.Dialect, key, address)
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
		if m.Unpriced {
			fmt.Fprintf(t, "%s\tunpriced\t\t\t\t\t%s\t%s\n", m.Name,
				terminal.OrDash(terminal.Number(m.Context), m.Context == 0), terminal.OrDash(terminal.Number(m.MaxOutput), m.MaxOutput == 0))
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.Input, m.Cached, m.Output,
			terminal.OrDash(m.BatchInput.String(), m.BatchInput == 0), terminal.OrDash(m.BatchOutput.String(), m.BatchOutput == 0),
			terminal.OrDash(terminal.Number(m.Context), m.Context == 0), terminal.OrDash(terminal.Number(m.MaxOutput), m.MaxOutput == 0))
	}
	fmt.Fprintf(t, "\nDollars for a million tokens, as of %s.\n", k.AsOf)
	return t.Flush()
}

// live asks the provider of --live for its models, and adds the prices that are known.
func (c *modelsCmd) live(ctx context.Context, s *State, prices *price.Table) (modelList, error) {
	k := modelList{AsOf: prices.AsOf(), Providers: []knownProvider{}, Models: []knownModel{}}
	name := strings.TrimSuffix(c.Live, "/")
	if _, ok := provider.Lookup(name); !ok && c.BaseURL == "" {
		return k, exit.Usagef("--live %s: %w; or give its address with --base-url", name, provider.Unknown(name))
	}
	a := providerFlags{BaseURL: c.BaseURL, KeyEnv: c.KeyEnv, KeyCommand: c.KeyCommand, Dialect: c.Dialect, APIVersion: c.APIVersion}
	p, err := a.provider(name+"/any", s.Env)
	if err != nil {
		return k, err
	}
	if p.InProcess() {
		return k, exit.Usagef("--live %s: it has no server to ask", p.Name)
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	all, err := dialect.ListModels(ctx, p)
	if stopped := context.Cause(ctx); stopped != nil {
		return k, stopped
	}
	if err != nil {
		return k, &exit.Error{Code: exit.Failed, Err: err}
	}
	k.Providers = append(k.Providers, knownProvider{Name: p.Name, Dialect: p.Dialect, BaseURL: p.BaseURL, KeyEnv: p.KeyEnv, KeySet: p.KeyEnv != "", Command: provider.CommandLine(p.KeyCommand), Credentials: p.Credentials})
	for _, m := range all {
		name := p.Name + "/" + m.Name
		if !strings.Contains(name, c.Find) {
			continue
		}
		one := knownModel{Name: name, Unpriced: true}
		if found, ok := prices.Find(name); ok {
			one = pricedModel(name, found)
		}
		one.Context, one.MaxOutput = cmp.Or(m.Context, one.Context), cmp.Or(m.MaxOutput, one.MaxOutput)
		k.Models = append(k.Models, one)
	}
	return k, nil
}

// changedModel is a model whose price a newer file changes, in dollars for a million tokens.
type changedModel struct {
	Name      string     `json:"name"`
	Change    string     `json:"change"` // new, changed or gone
	OldInput  *llm.Money `json:"old_input,omitempty"`
	OldOutput *llm.Money `json:"old_output,omitempty"`
	Input     *llm.Money `json:"input,omitempty"`
	Output    *llm.Money `json:"output,omitempty"`
	Retired   bool       `json:"retired,omitempty"`
}

// update prints what the file of --update changes about the prices.
func (c *modelsCmd) update(s *State, prices *price.Table) error {
	newer, err := price.Load(c.Update)
	if err != nil {
		return exit.Usagef("--update: %w", err)
	}
	all := []changedModel{}
	for _, ch := range prices.Changes(newer, func(name string) bool { _, ok := provider.Lookup(name); return ok }) {
		if !strings.Contains(ch.Model, c.Find) {
			continue
		}
		m := changedModel{Name: ch.Model, Change: "changed", Retired: ch.New.Retired}
		if ch.Was {
			m.OldInput, m.OldOutput = &ch.Old.Input, &ch.Old.Output
		} else {
			m.Change = "new"
		}
		if ch.Here {
			m.Input, m.Output = &ch.New.Input, &ch.New.Output
		} else {
			m.Change = "gone"
		}
		all = append(all, m)
	}
	if c.JSON {
		return terminal.PrintJSON(s.Stdout, map[string]any{"prices_as_of": prices.AsOf(), "newer_as_of": newer.AsOf(), "changes": all})
	}
	if len(all) == 0 {
		fmt.Fprintln(s.Stdout, "nothing changes")
		return nil
	}
	t := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MODEL\tCHANGE\tINPUT WAS\tOUTPUT WAS\tINPUT\tOUTPUT")
	show := func(m *llm.Money) string {
		if m == nil {
			return "–"
		}
		return m.String()
	}
	for _, m := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", terminal.Safe(m.Name), m.Change, show(m.OldInput), show(m.OldOutput), show(m.Input), show(m.Output))
	}
	fmt.Fprintf(t, "\nDollars for a million tokens. To use the file: --prices %s, or prices: %s in a plan. Models that are gone keep their built-in price.\n", terminal.Safe(c.Update), terminal.Safe(c.Update))
	return t.Flush()
}
