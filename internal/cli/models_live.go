package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"parley/internal/ask/dialect"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/llm"
)

// live asks the provider of --live for its models, and adds the prices that are known.
func (c *modelsCmd) live(ctx context.Context, s *State, prices *price.Table) (known, error) {
	k := known{AsOf: prices.AsOf(), Providers: []knownProvider{}, Models: []knownModel{}}
	name := strings.TrimSuffix(c.Live, "/")
	if _, ok := provider.Lookup(name); !ok && c.BaseURL == "" {
		return k, exit.Usagef("--live %s: %w; or give its address with --base-url", name, provider.Unknown(name))
	}
	a := account{BaseURL: c.BaseURL, KeyEnv: c.KeyEnv, KeyCommand: c.KeyCommand, Dialect: c.Dialect, APIVersion: c.APIVersion}
	p, err := a.provider(name+"/any", s.Env)
	if err != nil {
		return k, err
	}
	if p.InProcess() {
		return k, exit.Usagef("--live %s: it has no server to ask", p.Name)
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	all, err := dialect.List(ctx, p)
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
			one = priced(name, found)
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
