package provider

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"parley/internal/kit/text"
	"parley/llm"
)

// Validate returns what is wrong with p, naming each field and what it allows, or nil. It does not read the environment:
// a missing key is found when p is opened.
func (p Provider) Validate() error {
	var errs []error
	for _, e := range p.Check() {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// FieldError is one field of a provider that is wrong.
type FieldError struct {
	Provider string
	Path     []string // of the field: dialect, or base_urls and [1]
	Problem  string
}

// Field returns the path as text, such as base_urls[1] or model_limits.small*.
func (e *FieldError) Field() string {
	var b strings.Builder
	for i, step := range e.Path {
		if i > 0 && !strings.HasPrefix(step, "[") {
			b.WriteByte('.')
		}
		if step == "" || strings.ContainsFunc(step, func(r rune) bool { return r == ' ' || !unicode.IsGraphic(r) }) {
			step = strconv.Quote(step)
		}
		b.WriteString(step)
	}
	return b.String()
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("provider %s: %s: %s", cmp.Or(e.Provider, "without a name"), e.Field(), e.Problem)
}

// Check returns every field of p that is wrong: see Validate.
func (p Provider) Check() (all []*FieldError) {
	bad := func(at path, format string, args ...any) {
		all = append(all, &FieldError{p.Name, at, fmt.Sprintf(format, args...)})
	}
	if p.Name == "" || strings.ContainsAny(p.Name, "/ \t\n") {
		bad(path{"name"}, "must be a word without slash or space, as lab in lab/any-model")
	}
	if !slices.Contains(Dialects(), p.Dialect) {
		bad(path{"dialect"}, "%s", unknown(p.Dialect, Dialects()))
	}
	p.checkServers(bad)
	if p.KeyEnv != "" && !isEnvName(p.KeyEnv) {
		// The value may be a key in the wrong place, so the error does not show it.
		bad(path{"key_env"}, "must be the name of an environment variable (letters, digits, _), never the key itself")
	}
	p.checkKeyCommand(bad)
	p.checkCredentials(bad)
	if !slices.Contains([]string{"", "auto", "always", "never"}, p.Stream) {
		bad(path{"stream"}, "%s", unknown(p.Stream, []string{"always", "auto", "never"}))
	}
	if !slices.Contains([]Counting{"", CountMax, CountUsed}, p.Counting) {
		bad(path{"counting"}, "%s", unknown(string(p.Counting), []string{"max", "used"}))
	}
	if p.Timeout < 0 {
		bad(path{"timeout"}, "must not be negative")
	}
	p.checkHeaders(bad)
	p.checkSecrets(bad)
	p.checkLimits(bad)
	p.checkBatch(bad)
	p.checkCapabilities(bad)
	return all
}

type path []string

type complain func(at path, format string, args ...any)

var version = regexp.MustCompile(`/v[0-9][^/]*(/|$)`)

// Unversioned reports whether an address names no API version such as /v1. Most servers do not answer there.
func Unversioned(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && !version.MatchString(u.Path)
}

// item is the path of a list's item, or of a field in it.
func item(list string, i int, field ...string) path {
	return append(path{list, fmt.Sprintf("[%d]", i)}, field...)
}

func (p Provider) checkServers(bad complain) {
	switch {
	case p.InProcess():
		for field, given := range map[string]bool{"base_urls": len(p.BaseURLs) > 0, "session": p.HasSessions(), "close_session": p.CloseSession, "metrics": p.Metrics != ""} {
			if given {
				bad(path{field}, "is for servers, and a provider of dialect %s has none", p.Dialect)
			}
		}
		return
	case p.BaseURL == "" && len(p.BaseURLs) == 0 && p.Example != "":
		bad(path{"base_url"}, "is missing: your account's own address, as %s", p.Example)
	case len(p.BaseURLs) == 0:
		if err := checkURL(p.BaseURL); err != nil {
			bad(path{"base_url"}, "%v", err)
		}
	case p.BaseURL != "":
		bad(path{"base_urls"}, "not together with base_url: list all servers in base_urls")
	case p.Batch != nil && p.BatchBucket() == "":
		bad(path{"batch"}, "not together with base_urls: a batch API belongs to one server")
	}
	p.checkVersion(bad)
	seen := map[string]bool{}
	for i, u := range p.BaseURLs {
		at := item("base_urls", i)
		if err := checkURL(u); err != nil {
			bad(at, "%v", err)
		} else if u = strings.TrimRight(u, "/"); seen[u] {
			bad(at, "is listed twice: list each server once")
		}
		seen[u] = true
	}
	if !slices.Contains([]Session{"", sessionNone, SessionHeader, SessionPath}, p.Session) {
		bad(path{"session"}, "%s", unknown(string(p.Session), []string{"header", "none", "path"}))
	}
	if p.CloseSession && p.Session != SessionPath {
		bad(path{"close_session"}, "wants session: path, since it is closed at its address")
	}
	if p.Metrics != "" && (p.Metrics[0] != '/' || strings.ContainsFunc(p.Metrics, func(r rune) bool { return r <= ' ' || r > '~' || r == '#' })) {
		bad(path{"metrics"}, "must be a path from the server's root, as /metrics")
	}
}

// checkVersion checks the version of Azure's older paths, or that of Vertex AI.
func (p Provider) checkVersion(bad complain) {
	at := path{"api_version"}
	switch {
	case p.APIVersion == "" || p.Dialect == "anthropic" && p.APIVersion == VertexVersion:
		return
	case p.Dialect == "anthropic":
		bad(at, "must be %s in the anthropic dialect, for Vertex AI", VertexVersion)
	case p.Dialect != "openai" && p.Dialect != "responses":
		bad(at, "is for Azure OpenAI, whose dialects are openai and responses, and for Anthropic's models on Vertex AI")
	case !azureVersion.MatchString(p.APIVersion):
		bad(at, "must be a version of Azure OpenAI, as 2024-10-21")
	case p.Batch != nil:
		bad(at, "not together with batch: use the address that ends in /openai/v1")
	}
	for i, one := range p.Servers() {
		if p.APIVersion != "" && strings.Contains(one.BaseURL+"/", "/v1/") {
			field := path{"base_url"}
			if len(p.BaseURLs) > 0 {
				field = item("base_urls", i)
			}
			bad(field, "ends in /v1, where Azure wants no api_version: leave one of them out, as https://RESOURCE.openai.azure.com/openai")
		}
	}
}

var azureVersion = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}(-preview)?$`)

func (p Provider) checkHeaders(bad complain) {
	for name, value := range p.Headers {
		switch {
		case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }):
			bad(path{"headers", name}, "%q is not the name of a header", name)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			bad(path{"headers", name}, "its value holds a control character")
		}
		if slices.Contains(secretHeaders(), strings.ToLower(name)) {
			bad(path{"headers", name}, "a secret does not belong here; name its environment variable in key_env")
		}
	}
}

func (p Provider) checkLimits(bad complain) {
	check := func(at path, l Limits) {
		if !(l.RPM >= 0 && l.TPM >= 0 && l.ITPM >= 0 && l.OTPM >= 0) || l.Concurrency < 0 {
			bad(at, "must not be negative; 0 means not known")
		}
	}
	check(path{"limits"}, p.Limits)
	for pattern, l := range p.ModelLimits {
		check(path{"model_limits", pattern}, l)
	}
}

func (p Provider) checkCapabilities(bad complain) {
	var efforts []string
	for _, e := range llm.Efforts() {
		efforts = append(efforts, string(e))
	}
	for i, c := range p.Capabilities {
		if c.Match == "" {
			bad(item("capabilities", i, "match"), "must be a pattern over provider/model, as %s/*", p.Name)
		}
		for _, e := range c.Efforts {
			if !slices.Contains(efforts, e) {
				bad(item("capabilities", i, "efforts"), "%s", unknown(e, efforts))
			}
		}
		if !slices.Contains([]Thinking{"", ThinkingBudget, ThinkingAdaptive, ThinkingDefault, ThinkingAlways}, c.Thinking) {
			bad(item("capabilities", i, "thinking"), "%s", unknown(string(c.Thinking), []string{"adaptive", "always", "budget", "default"}))
		}
	}
}

func checkURL(s string) error {
	if s == "" {
		return errors.New("is missing: an http or https address, as https://host/v1")
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("is not an address: use http or https, as https://host/v1")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with http:// or https://, as https://host/v1")
	case u.Host == "" || u.Hostname() == "":
		return errors.New("has no host: use an address as https://host/v1")
	case u.User != nil:
		return errors.New("must not hold a user or password; name the key's environment variable in key_env")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("must end with the path: no ? and no #; a key belongs in an environment variable that key_env names")
	}
	return nil
}

func isEnvName(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return len(s) <= 128
}

// UnknownError means that neither a preset nor one of Own has the name Name. An empty Name means that a model has no
// provider.
type UnknownError struct {
	Name string
	Own  []string
}

// Unknown returns an UnknownError.
func Unknown(name string, own ...string) error { return &UnknownError{Name: name, Own: own} }

// Error lists the known providers, and suggests one.
func (e *UnknownError) Error() string {
	names := slices.Clone(e.Own)
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if e.Name == "" {
		return "a model is written provider/model, as sim/small; the providers are " + strings.Join(names, ", ")
	}
	return "provider " + unknown(e.Name, names)
}

// unknown says that name is not one of the allowed ones, and suggests one.
func unknown(name string, allowed []string) string {
	s := fmt.Sprintf("%q is not known; use one of %s", name, strings.Join(allowed, ", "))
	if n := text.Nearest(name, allowed); n != "" {
		s += fmt.Sprintf(" (did you mean %s?)", n)
	}
	return s
}
