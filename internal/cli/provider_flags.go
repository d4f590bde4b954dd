package cli

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/cli/exit"
	"parley/llm"
)

// providerFlags holds the flags that describe the provider of --model: a new provider with --base-url, or changes to a
// known one.
type providerFlags struct {
	BaseURL     string        `name:"base-url" placeholder:"URL" help:"Base URL of the provider: everything before /chat/completions, /responses or /messages."`
	KeyEnv      string        `placeholder:"NAME" help:"Environment variable with the API key."`
	KeyCommand  string        `placeholder:"COMMAND" help:"Program that prints the API key, and its arguments, separated by spaces. No shell reads it. Instead of --key-env."`
	Dialect     string        `placeholder:"NAME" help:"Wire format: anthropic, bedrock, gemini, openai, responses or sim. Default: that of a known provider, else openai."`
	Header      []string      `sep:"none" placeholder:"NAME=VALUE" help:"Header to send with every request. Repeatable."`
	Concurrency int           `placeholder:"N" help:"Maximum number of calls in flight. Default: adjusted automatically."`
	RPM         float64       `name:"rpm" placeholder:"N" help:"Requests per minute."`
	TPM         float64       `name:"tpm" placeholder:"N" help:"Tokens per minute, input plus output."`
	ITPM        float64       `name:"itpm" placeholder:"N" help:"Input tokens per minute."`
	OTPM        float64       `name:"otpm" placeholder:"N" help:"Output tokens per minute."`
	APIVersion  string        `name:"api-version" placeholder:"VERSION" help:"Version of Azure's older paths, such as 2024-10-21. --base-url then ends in /openai."`
	Timeout     time.Duration `placeholder:"DURATION" help:"Maximum time until an answer starts, then until it is complete or the next line of a stream arrives. Default: 10m."`
}

// provider returns the provider that serves model, with the flags applied.
func (a *providerFlags) provider(model string, env func(string) (string, bool)) (provider.Provider, error) {
	name, _ := llm.SplitModel(model)
	p, known := provider.Lookup(name)
	switch {
	case !known && a.BaseURL == "":
		return p, exit.Usagef("--model %s: %w; or give its address with --base-url", model, provider.Unknown(name))
	case !known:
		p = provider.Provider{Name: name, Dialect: "openai"}
	}
	if a.BaseURL != "" {
		// A key is only for the address it belongs to: another --base-url needs its own --key-env.
		if !p.Serves(a.BaseURL) {
			p.DropKey()
		}
		p.BaseURL = a.BaseURL
	}
	if a.KeyEnv != "" {
		p.DropKey()
		p.KeyEnv = a.KeyEnv
	}
	if a.KeyCommand != "" {
		if a.KeyEnv != "" {
			return p, exit.Usagef("--key-command and --key-env are both set: the key comes from a program or from a variable")
		}
		p.DropKey()
		p.KeyCommand = strings.Fields(a.KeyCommand)
	}
	p.Dialect = cmp.Or(a.Dialect, p.Dialect)
	p.APIVersion = cmp.Or(a.APIVersion, p.APIVersion)
	p.Timeout = cmp.Or(a.Timeout, p.Timeout)
	a.limits(&p.Limits)
	if err := a.headers(&p); err != nil {
		return p, err
	}
	if err := p.Validate(); err != nil {
		return p, exit.AsUsage(err)
	}
	return p, needKey(p, a.KeyEnv != "", env)
}

// limits overrides the known limits with those of the flags.
func (a *providerFlags) limits(l *provider.Limits) {
	l.RPM, l.TPM = cmp.Or(a.RPM, l.RPM), cmp.Or(a.TPM, l.TPM)
	l.ITPM, l.OTPM = cmp.Or(a.ITPM, l.ITPM), cmp.Or(a.OTPM, l.OTPM)
	l.Concurrency = cmp.Or(a.Concurrency, l.Concurrency)
}

// headers parses --header. Its errors never contain a value, which may be a secret.
func (a *providerFlags) headers(p *provider.Provider) error {
	for _, h := range a.Header {
		name, value, ok := strings.Cut(h, "=")
		if !ok {
			return exit.Usagef("--header: write it NAME=VALUE")
		}
		if p.Headers == nil {
			p.Headers = map[string]string{}
		}
		p.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return nil
}

// needKey returns an error if the variable with the provider's key is not set. The error does not repeat a name
// from a flag: it may be a key put in the wrong place.
func needKey(p provider.Provider, fromFlag bool, env func(string) (string, bool)) error {
	if p.KeyEnv == "" {
		return nil
	}
	if v, ok := env(p.KeyEnv); ok && v != "" {
		return nil
	}
	if fromFlag {
		return exit.Usagef("--key-env: no environment variable of that name is set")
	}
	return exit.Usagef("%s needs a key: set %s", p.Name, p.KeyEnv)
}

// providers returns the providers that serve model and the fallbacks.
func (a *providerFlags) providers(model string, fallbacks []string, env func(string) (string, bool)) ([]provider.Provider, error) {
	first, err := a.provider(model, env)
	if err != nil {
		return nil, err
	}
	all := []provider.Provider{first}
	for _, f := range fallbacks {
		name, rest := llm.SplitModel(f)
		if name == "" || rest == "" {
			return nil, exit.Usagef("--fallback %q: write it provider/model", f)
		}
		if slices.ContainsFunc(all, func(p provider.Provider) bool { return p.Name == name }) {
			continue
		}
		p, ok := provider.Lookup(name)
		if !ok {
			return nil, exit.Usagef("--fallback: %w", provider.Unknown(name))
		}
		if err := needKey(p, false, env); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}
