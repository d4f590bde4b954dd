// Package provider describes accounts at model endpoints as data: their dialect, address, key, limits, and what their
// models refuse. The presets and the capability table are defaults: a plan file or a flag can override everything.
//
// What it promises: a Provider never contains the value of a key, only the name of the environment variable that holds
// it, the program that prints it, or whose credentials give it.
//
// Package dialect speaks to providers, and package dispatch keeps their limits.
package provider

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"
)

// Provider is an account at an endpoint.
type Provider struct {
	// Name is the first half of a model's name: lab in lab/any.
	Name string `json:"name,omitempty"`
	// Dialect is the wire format: openai (chat completions), responses, anthropic, sim; or go, for models that are
	// values of the Go program.
	Dialect string `json:"dialect"`
	// BaseURL is everything before /chat/completions, /responses or /messages: it usually ends in /v1.
	BaseURL string `json:"base_url,omitempty"`
	// BaseURLs are the addresses of several servers with the same models, instead of BaseURL. Limits hold for each.
	BaseURLs []string `json:"base_urls,omitempty"`
	// Example is the form of BaseURL, for a preset whose address differs by account: capital letters are to be replaced.
	Example string `json:"-"`
	// APIVersion selects the older paths of Azure OpenAI: BaseURL/deployments/MODEL/chat/completions?api-version=…
	// In the anthropic dialect, it is VertexVersion for the paths of Vertex AI. Default: the paths of the dialect.
	APIVersion string `json:"api_version,omitempty"`
	// Session is how a server learns which requests belong together. Default: not at all.
	Session Session `json:"session,omitempty"`
	// CloseSession notifies the server of the end of a session with a POST to BaseURL/SESSION/close. Default: false.
	CloseSession bool `json:"close_session,omitempty"`
	// Metrics is the path, from the server's root, of a Prometheus page of vLLM or SGLang. It controls the number of
	// calls in flight. Default: none.
	Metrics string `json:"metrics,omitempty"`
	// KeyEnv names the environment variable that holds the key. Empty, and no KeyCommand: no key is sent.
	KeyEnv string `json:"key_env,omitempty"`
	// KeyCommand is a program that prints the key, with its arguments: see package credential. It is for keys that
	// expire. Not together with KeyEnv.
	KeyCommand []string `json:"key_command,omitempty"`
	// Credentials is google for tokens from Google's Application Default Credentials. They go only to Vertex AI and to this
	// machine. Not together with KeyEnv or KeyCommand. Default: none.
	Credentials Credentials `json:"credentials,omitempty"`
	// KeyHeader is the header that carries the key. Default: by dialect. In Authorization, the key follows "Bearer".
	KeyHeader string `json:"key_header,omitempty"`
	// Headers are sent with every request.
	Headers map[string]string `json:"headers,omitempty"`
	// Limits are what the account allows. Zero fields are learned from the server.
	Limits Limits `json:"limits,omitzero"`
	// ModelLimits are separate limits for models by pattern (gpt-5*). Models that match one pattern share it. All other
	// models share Limits.
	ModelLimits map[string]Limits `json:"model_limits,omitempty"`
	// Counting is how the server counts tokens against its limits. Default: by dialect.
	Counting Counting `json:"counting,omitempty"`
	// Stream is auto, always or never. Default: auto, which streams long answers.
	Stream string `json:"stream,omitempty"`
	// HTTP2 multiplexes calls over HTTP/2 if the server offers it. The default, HTTP/1.1 with one connection per call in
	// flight, is as fast and simpler up to some thousands of calls.
	HTTP2 bool `json:"http2,omitempty"`
	// Timeout limits one attempt: until the header of the answer, and from there until its end, or between two lines of
	// a stream. Default: 10 minutes.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Warm sends equal long prefixes once before they fan out, since the provider's prompt cache can be read only after
	// the first response began.
	Warm bool `json:"warm,omitempty"`
	// Batch describes the account's batch API; nil: it has none. Default: the preset's.
	Batch *Batch `json:"batch,omitempty"`
	// Capabilities override the capability table, first match first.
	Capabilities []Capability `json:"capabilities,omitempty"`
}

// HasKey reports whether p sends a key of its own.
func (p Provider) HasKey() bool {
	return p.KeyEnv != "" || len(p.KeyCommand) > 0 || p.Credentials != ""
}

// Signs reports whether the requests of p are signed with the credentials of AWS, instead of a key.
func (p Provider) Signs() bool { return p.Dialect == "bedrock" && !p.HasKey() }

// DropKey removes what p says about its key, for another address or another key.
func (p *Provider) DropKey() { p.KeyEnv, p.KeyCommand, p.Credentials = "", nil, "" }

// Limits are what an account allows. Zero means unknown: learned from the server's headers, or unlimited.
type Limits struct {
	RPM  float64 `json:"rpm,omitempty"`  // requests a minute
	TPM  float64 `json:"tpm,omitempty"`  // tokens a minute, input and output together
	ITPM float64 `json:"itpm,omitempty"` // input tokens a minute
	OTPM float64 `json:"otpm,omitempty"` // output tokens a minute
	// Concurrency limits the calls in flight. Default: found by trying, from 16 up.
	Concurrency int `json:"concurrency,omitempty"`
}

// Session is how a server learns which requests belong together, such as those of an episode.
type Session string

const (
	// sessionNone sends nothing.
	sessionNone Session = "none"
	// SessionHeader sends the session's name in the header X-Session-Id, and as the prompt cache key to models that know
	// one.
	SessionHeader Session = "header"
	// SessionPath puts it into the address: BaseURL/SESSION/chat/completions.
	SessionPath Session = "path"
)

// Servers returns p once for each of its servers, each with its own BaseURL.
func (p Provider) Servers() []Provider {
	if len(p.BaseURLs) == 0 {
		return []Provider{p}
	}
	out := make([]Provider, len(p.BaseURLs))
	for i, u := range p.BaseURLs {
		one := p
		one.BaseURL, one.BaseURLs = u, nil
		out[i] = one
	}
	return out
}

// KeepsLimits reports whether the servers of p are known to stop an answer at the request's limit on output tokens.
// Servers that are not a preset's may not know the limit.
func (p Provider) KeepsLimits() bool { return p.Dialect != "go" && p.atPreset() }

// atPreset reports whether all servers of p are presets' servers.
func (p Provider) atPreset() bool {
	for _, one := range p.Servers() {
		if !slices.ContainsFunc(Presets(), func(known Provider) bool { return known.Serves(one.BaseURL) }) {
			return false
		}
	}
	return true
}

// Serves reports whether an address is that of the preset p.
func (p Provider) Serves(address string) bool {
	if p.Example == "" {
		return p.BaseURL == strings.TrimRight(address, "/")
	}
	return strings.HasPrefix(address, "https://") && strings.HasSuffix(hostOf(address), "."+p.domain())
}

// domain returns the host of a preset or, if its address differs by account, what all its hosts end in.
func (p Provider) domain() string {
	if p.Example == "" {
		return hostOf(p.BaseURL)
	}
	_, rest, _ := strings.Cut(p.Example, "://")
	host, _, _ := strings.Cut(rest, "/")
	last := strings.LastIndexFunc(host, func(r rune) bool { return r >= 'A' && r <= 'Z' })
	_, host, _ = strings.Cut(host[last+1:], ".")
	return host
}

// HasSessions reports whether p needs to know which requests belong together.
func (p Provider) HasSessions() bool {
	return len(p.BaseURLs) > 1 || p.Session == SessionHeader || p.Session == SessionPath
}

// Counting is how a server counts tokens against its limits.
type Counting string

const (
	// CountMax counts max(max_tokens, estimate) when a request arrives, as OpenAI does.
	CountMax Counting = "max"
	// CountUsed counts input without cache reads when a request arrives, and output as it is produced, as Anthropic does.
	CountUsed Counting = "used"
)

// Counts returns how p counts tokens: by Counting, or by its dialect.
func (p Provider) Counts() Counting {
	switch {
	case p.Counting != "":
		return p.Counting
	case p.Dialect == "anthropic":
		return CountUsed
	default:
		return CountMax
	}
}

// LimitPatterns returns the patterns of ModelLimits, the longest and so most specific first.
func (p Provider) LimitPatterns() []string {
	return slices.SortedFunc(maps.Keys(p.ModelLimits), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
}

// Presets lists the providers that are known by name, sorted by name, with each vendor's names together.
func Presets() []Provider {
	return []Provider{
		{Name: "anthropic", Dialect: "anthropic", BaseURL: "https://api.anthropic.com/v1", KeyEnv: "ANTHROPIC_API_KEY", Counting: CountUsed, Warm: true, Batch: &Batch{}},
		{Name: "azure", Dialect: "openai", Example: azureExample, KeyEnv: "AZURE_OPENAI_API_KEY", KeyHeader: "api-key", Counting: CountMax},
		{Name: "azure-responses", Dialect: "responses", Example: azureExample, KeyEnv: "AZURE_OPENAI_API_KEY", KeyHeader: "api-key", Counting: CountMax},
		{Name: "bedrock", Dialect: "bedrock", Example: "https://bedrock-runtime.REGION.amazonaws.com", Counting: CountMax},
		{Name: "deepseek", Dialect: "openai", BaseURL: "https://api.deepseek.com/v1", KeyEnv: "DEEPSEEK_API_KEY"},
		{Name: "gemini", Dialect: "gemini", BaseURL: "https://generativelanguage.googleapis.com/v1beta", KeyEnv: "GEMINI_API_KEY", Batch: &Batch{}},
		{Name: "groq", Dialect: "openai", BaseURL: "https://api.groq.com/openai/v1", KeyEnv: "GROQ_API_KEY", Batch: &Batch{Bytes: 100_000_000}},
		{Name: "ollama", Dialect: "openai", BaseURL: "http://localhost:11434/v1"},
		{Name: "openai", Dialect: "openai", BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY", Counting: CountMax, Batch: &Batch{}},
		{Name: "openai-responses", Dialect: "responses", BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY", Counting: CountMax, Batch: &Batch{}},
		{Name: "openrouter", Dialect: "openai", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY"},
		{Name: "sglang", Dialect: "openai", BaseURL: "http://localhost:30000/v1"},
		{Name: "sim", Dialect: "sim"},
		{Name: "vertex", Dialect: "gemini", Example: vertexExample + "google", Credentials: CredentialsGoogle, KeyHeader: "authorization"},
		{Name: "vertex-anthropic", Dialect: "anthropic", Example: vertexExample + "anthropic", APIVersion: VertexVersion, Credentials: CredentialsGoogle, KeyHeader: "authorization", Counting: CountUsed, Warm: true},
		{Name: "vllm", Dialect: "openai", BaseURL: "http://localhost:8000/v1"},
	}
}

const (
	azureExample  = "https://RESOURCE.openai.azure.com/openai/v1"
	vertexExample = "https://REGION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/REGION/publishers/"

	// VertexVersion is the version of Anthropic's messages on Vertex AI.
	VertexVersion = "vertex-2023-10-16"
)

// Lookup returns the preset of that name.
func Lookup(name string) (Provider, bool) {
	for _, p := range Presets() {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}

// Dialects lists the wire formats. Two of them have no server: see InProcess.
func Dialects() []string {
	return []string{"anthropic", "bedrock", "gemini", "go", "openai", "responses", "sim"}
}

// InProcess reports whether p has no server: its models are simulated (sim) or values of the Go program (go).
func (p Provider) InProcess() bool { return p.Dialect == "sim" || p.Dialect == "go" }

// PresetNames lists the names of Presets.
func PresetNames() []string {
	var names []string
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}

// Tiers returns the names of p's service tiers, and false if nothing is known about them: its server is not a preset's. From
// the vendors' pages: OpenAI, Flex and Priority processing, 2026-08; Anthropic, Service tiers, 2026-08; Google, Gemini API
// reference (serviceTier), 2026-09; Groq, Service tiers, 2026-09; Microsoft, Enable priority processing for Microsoft Foundry
// models, 2026-11. Those of AWS are from the types of its SDK, bedrockruntime 1.63.
func (p Provider) Tiers() (names []string, known bool) {
	if p.InProcess() || !p.atPreset() {
		return nil, false
	}
	preset, ok := Lookup(p.Name)
	switch host := hostOf(preset.BaseURL); {
	case !ok || host == "localhost":
		return nil, false
	case host == "api.openai.com":
		return []string{"auto", "default", "flex", "priority"}, true
	case host == "api.anthropic.com":
		return []string{"auto", "standard_only"}, true
	case preset.Name == "azure" || preset.Name == "azure-responses":
		return []string{"auto", "default", "priority"}, true
	case p.Dialect == "bedrock":
		return []string{"default", "flex", "priority", "reserved"}, true
	case p.Dialect == "gemini":
		return []string{"flex", "priority", "standard"}, true
	case host == "api.groq.com":
		return []string{"auto", "flex", "on_demand", "performance"}, true
	case host == "openrouter.ai": // it passes the tier on
		return nil, false
	default:
		return []string{}, true
	}
}

// Origin identifies who answers for p: wire format, addresses, where the key comes from, and headers. A cached
// answer of one origin is never given to another. The key itself is not part of it, so a new key for the same account
// finds the answers that the old one paid for. Headers cannot be read back from it.
func (p Provider) Origin() [32]byte {
	var b []byte
	add := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	add(p.Dialect)
	add(p.KeyEnv)
	urls := []string{}
	for _, one := range p.Servers() {
		urls = append(urls, strings.TrimRight(one.BaseURL, "/"))
	}
	slices.Sort(urls)
	urls = slices.Compact(urls)
	b = binary.AppendUvarint(b, uint64(len(urls)))
	for _, u := range urls {
		add(u)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		add(strings.ToLower(name))
		add(p.Headers[name])
	}
	if p.APIVersion != "" {
		add("api-version")
		add(p.APIVersion)
	}
	for _, word := range p.KeyCommand {
		add(word)
	}
	if p.Credentials != "" {
		add("credentials")
		add(string(p.Credentials))
	}
	return sha256.Sum256(b)
}
