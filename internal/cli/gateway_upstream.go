package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/internal/ask/trust"
	"parley/internal/cli/app"
	"parley/internal/cli/terminal"
	"parley/internal/serve/gateway"
)

// upstreamFlags choose the providers that are called.
type upstreamFlags struct {
	Upstream []string `group:"upstreams" sep:"none" placeholder:"NAME[=URL]" help:"A provider, and its base URL: everything before /chat/completions or /messages. Repeatable. A model name without a provider goes to the first upstream of its format."`
	KeyEnv   []string `group:"upstreams" sep:"none" placeholder:"[NAME=]VAR" help:"Environment variable with the key of an upstream. Without it, the clients' own keys are passed on."`
	KeyCmd   []string `group:"upstreams" name:"key-command" sep:"none" placeholder:"[NAME=]COMMAND" help:"Program that prints the key of an upstream, and its arguments, separated by spaces. No shell reads it. Instead of --key-env."`
	Dialect  []string `group:"upstreams" sep:"none" placeholder:"NAME=FORMAT" help:"Wire format of an upstream: anthropic, bedrock, gemini, openai or responses. Default: that of a known provider, else openai."`
	ChatOnly []string `group:"upstreams" name:"chat-only" sep:"none" placeholder:"NAME" help:"An upstream whose /responses is missing or incomplete: calls of /v1/responses become chat completions. Default: those that answer 404."`
	Alias    []string `group:"upstreams" sep:"none" placeholder:"NAME=MODEL" help:"Another name for a model, such as small=openai/gpt-5-mini."`
	Fallback []string `group:"upstreams" sep:"none" placeholder:"MODEL=MODEL" help:"Model to ask if another cannot answer, both as provider/model."`
	HTTP2    bool     `group:"upstreams" name:"http2" help:"Use HTTP/2 with upstreams that support it."`

	Concurrency int           `group:"limits" placeholder:"N" help:"Maximum number of calls in flight at an upstream. Default: adjusted automatically."`
	RPM         float64       `group:"limits" name:"rpm" placeholder:"N" help:"Requests per minute."`
	TPM         float64       `group:"limits" name:"tpm" placeholder:"N" help:"Tokens per minute, input plus output."`
	ITPM        float64       `group:"limits" name:"itpm" placeholder:"N" help:"Input tokens per minute."`
	OTPM        float64       `group:"limits" name:"otpm" placeholder:"N" help:"Output tokens per minute."`
	Timeout     time.Duration `group:"limits" placeholder:"DURATION" help:"Maximum time until an answer starts, then until it is complete or the next event of a stream arrives. Default: 10m."`
}

// upstreams sets the providers that are called and what they may cost.
func (c *gatewayCmd) upstreams(ctx context.Context, s *State, plan string, cfg *gateway.Config) error {
	cfg.Aliases, cfg.AliasOutput, cfg.Fallbacks = map[string]string{}, map[string]int{}, map[string][]string{}
	var places map[string]string
	if plan != "" {
		var err error
		if places, err = c.fromPlan(ctx, s, plan, cfg); err != nil {
			return err
		}
	}
	if err := c.setTo(cfg.Settings); err != nil {
		return err
	}
	if err := c.providers(cfg); err != nil {
		return err
	}
	var err error
	if cfg.Prices, err = app.Prices(cfg.Upstreams, cfg.Settings.Prices); err != nil {
		return err
	}
	if len(cfg.Upstreams) == 0 {
		return errors.New("no providers; name one with --upstream NAME=URL, or give a plan with providers")
	}
	for i := range cfg.Upstreams {
		p := &cfg.Upstreams[i]
		c.limit(p)
		if err := p.Validate(); err != nil {
			return err
		}
		if err := needKey(*p, c.keyFlag(p.Name), s.Env); err != nil {
			return err
		}
	}
	if err := c.parseNames(cfg); err != nil {
		return err
	}
	return c.checkKeys(s, plan, places, cfg)
}

// setTo gives settings the values of flags.
func (c *gatewayCmd) setTo(to *settings.Settings) (err error) {
	to.Prices, to.Cache, to.Retry.Retries = cmp.Or(c.Prices, to.Prices), cmp.Or(c.Cache, to.Cache), c.Retries
	if c.Unreachable != nil {
		to.Retry.Unreachable = *c.Unreachable
	}
	if c.Budget != nil {
		to.Budget, err = budgetOf(c.Budget)
	}
	return err
}

// checkKeys asks for the keys that upstreams get. The user decided about what --upstream describes, but not about
// what a plan does. An upstream without a key gets the keys of clients.
func (c *gatewayCmd) checkKeys(s *State, plan string, places map[string]string, cfg *gateway.Config) error {
	keys, err := c.gate(s)
	if err != nil {
		return err
	}
	var needs []trust.Need
	for _, p := range cfg.Upstreams {
		if slices.ContainsFunc(c.Upstream, func(flag string) bool { name, _, _ := strings.Cut(flag, "="); return name == p.Name }) {
			keys.allowTyped(p)
		}
		grants := trust.Keys(p)
		if len(cfg.Keys) == 0 {
			grants = append(grants, trust.Handed(p)...)
		}
		for _, g := range grants {
			needs = append(needs, trust.Need{Grant: g, Source: "the plan " + plan, Place: places[p.Name]})
		}
	}
	return keys.Check(needs...)
}

// fromPlan applies the settings of a plan. places is where the plan names keys, by provider.
func (c *gatewayCmd) fromPlan(ctx context.Context, s *State, file string, cfg *gateway.Config) (places map[string]string, err error) {
	if _, err := c.gate(s); err != nil {
		return nil, err
	}
	p, err := loadPlan(ctx, s, file, nil, c.reach())
	if err != nil {
		return nil, err
	}
	set := cfg.Settings
	set.Budget, set.Prices, set.Cache = p.Budget, p.Prices, p.Cache
	if p.Retry.Unreachable != settings.New(settings.Plan).Retry.Unreachable { // else the gateway's own default, which is shorter
		set.Retry.Unreachable = p.Retry.Unreachable
	}
	for _, u := range p.Providers {
		if u.Dialect != "sim" {
			cfg.Upstreams = append(cfg.Upstreams, u)
		}
	}
	for _, a := range p.Agents {
		if a.Model == "" || a.Human() {
			continue
		}
		cfg.Aliases[a.Name], cfg.AliasOutput[a.Name] = a.Model, a.MaxTokens
		if len(a.Fallbacks) > 0 {
			cfg.Fallbacks[a.Model] = a.Fallbacks
		}
	}
	return p.Places, nil
}

// providers parses --upstream, --key-env, --key-command and --dialect.
func (f *upstreamFlags) providers(cfg *gateway.Config) error {
	for _, flag := range f.Upstream {
		name, url, at := strings.Cut(flag, "=")
		p, known := provider.Lookup(name)
		switch {
		case strings.Contains(name, "://"):
			return fmt.Errorf("--upstream: write NAME=URL, with a name of your choice: --upstream %s", terminal.ShellWord("lab="+flag))
		case !known && !at:
			return fmt.Errorf("--upstream: %w; or give its address: %s=URL", provider.Unknown(name), name)
		case !known:
			p = provider.Provider{Name: name, Dialect: "openai"}
		}
		if at {
			// A key is only for the address it belongs to: another URL needs its own --key-env.
			if !p.Serves(url) {
				p.DropKey()
			}
			p.BaseURL = url
		}
		cfg.Upstreams = append(slices.DeleteFunc(cfg.Upstreams, func(u provider.Provider) bool { return u.Name == name }), p)
	}
	for _, v := range f.Dialect {
		if err := f.set(cfg, "--dialect", v, func(p *provider.Provider, v string) { p.Dialect = v }); err != nil {
			return err
		}
	}
	for _, name := range f.ChatOnly {
		if !slices.ContainsFunc(cfg.Upstreams, func(u provider.Provider) bool { return u.Name == name }) {
			return fmt.Errorf("--chat-only %s: there is no such upstream; name one of --upstream or of the plan", terminal.ShellWord(name))
		}
	}
	cfg.ChatOnly = f.ChatOnly
	return f.keys(cfg)
}

// keys parses --key-command and --key-env, which replace what is known about the key of an upstream.
func (f *upstreamFlags) keys(cfg *gateway.Config) error {
	printed := map[string]bool{}
	for _, v := range f.KeyCmd {
		if name, _, _ := strings.Cut(v, "="); len(cfg.Upstreams) == 1 && name != cfg.Upstreams[0].Name {
			v = cfg.Upstreams[0].Name + "=" + v // the arguments of the program may have a = too
		}
		put := func(p *provider.Provider, v string) {
			p.DropKey()
			p.KeyCommand, printed[p.Name] = strings.Fields(v), true
		}
		if err := f.set(cfg, "--key-command", v, put); err != nil {
			return err
		}
	}
	for _, v := range f.KeyEnv {
		put := func(p *provider.Provider, v string) {
			if !printed[p.Name] { // both is an error, which says so
				p.DropKey()
			}
			p.KeyEnv = v
		}
		if err := f.set(cfg, "--key-env", v, put); err != nil {
			return err
		}
	}
	return nil
}

// set gives an upstream the value of a flag, written VALUE or NAME=VALUE.
func (*upstreamFlags) set(cfg *gateway.Config, flag, value string, put func(*provider.Provider, string)) error {
	name, v, named := strings.Cut(value, "=")
	if !named {
		if len(cfg.Upstreams) != 1 {
			return fmt.Errorf("%s: there are several upstreams: write it NAME=VALUE", flag)
		}
		put(&cfg.Upstreams[0], value)
		return nil
	}
	i := slices.IndexFunc(cfg.Upstreams, func(p provider.Provider) bool { return p.Name == name })
	if i < 0 {
		return fmt.Errorf("%s: there is no upstream of that name", flag)
	}
	put(&cfg.Upstreams[i], v)
	return nil
}

// keyFlag reports whether a flag names the key of an upstream.
func (f *upstreamFlags) keyFlag(name string) bool {
	return slices.ContainsFunc(f.KeyEnv, func(v string) bool {
		of, _, named := strings.Cut(v, "=")
		return !named || of == name
	})
}

// limit overrides the known limits with those of the flags.
func (f *upstreamFlags) limit(p *provider.Provider) {
	a := providerFlags{Concurrency: f.Concurrency, RPM: f.RPM, TPM: f.TPM, ITPM: f.ITPM, OTPM: f.OTPM}
	a.limits(&p.Limits)
	p.Timeout = cmp.Or(f.Timeout, p.Timeout)
	p.HTTP2 = p.HTTP2 || f.HTTP2
}

// parseNames parses --alias and --fallback.
func (f *upstreamFlags) parseNames(cfg *gateway.Config) error {
	for _, v := range f.Alias {
		name, model, ok := strings.Cut(v, "=")
		if !ok || name == "" || model == "" {
			return fmt.Errorf("--alias %q: write it NAME=PROVIDER/MODEL", v)
		}
		cfg.Aliases[name] = model
	}
	for _, v := range f.Fallback {
		model, other, ok := strings.Cut(v, "=")
		if !ok || model == "" || other == "" {
			return fmt.Errorf("--fallback %q: write it PROVIDER/MODEL=PROVIDER/MODEL", v)
		}
		cfg.Fallbacks[model] = append(cfg.Fallbacks[model], other)
	}
	return nil
}
