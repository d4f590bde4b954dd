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
	Name     string   `json:"name,omitempty"`
	Dialect  string   `json:"dialect" doc:"The wire format; go is for models that a Go program brings as values. Needed unless NAME is a preset." default:"the preset's" aliases:"type,format,api"`
	BaseURL  string   `json:"base_url,omitempty" doc:"The address before /chat/completions, /responses or /messages: it ends in /v1 for most. Needed unless NAME is a preset or the dialect sim." default:"the preset's" aliases:"url,endpoint,api_base,host,address"`
	BaseURLs []string `json:"base_urls,omitempty" doc:"The addresses of several servers with the same models, instead of base_url. The calls of an episode stay on one of them; limits hold for each." default:"none" aliases:"urls,replicas,servers"`
	// Example is the form of BaseURL, for a preset whose address differs by account: capital letters are to be replaced.
	Example string `json:"-"`
	// Tried says what a preset was tried with, which is never its real endpoint. Empty: nothing.
	Tried        string            `json:"-"`
	APIVersion   string            `json:"api_version,omitempty" doc:"A version of Azure OpenAI, for its older paths: base_url/deployments/MODEL/chat/completions?api-version=VERSION. vertex-2023-10-16 is for Anthropic's models on Vertex AI." default:"none"`
	Session      Session           `json:"session,omitempty" doc:"How a server learns which calls belong to one episode: header sends X-Session-Id, path puts the name into the address (base_url/SESSION/chat/completions)." default:"none" oneof:"none,header,path"`
	CloseSession bool              `json:"close_session,omitempty" doc:"Whether to notify a server of the end of an episode, with a POST to base_url/SESSION/close. Requires session: path." default:"false"`
	Metrics      string            `json:"metrics,omitempty" doc:"The path of a server's page for Prometheus (vLLM, SGLang: /metrics). The number of calls in flight then follows the server's queue and cache." default:"none"`
	KeyEnv       string            `json:"key_env,omitempty" doc:"The name of the environment variable that holds the key; never the key itself." default:"the preset's, or no key is sent" aliases:"api_key,key,token,apikey,api_key_env,secret"`
	KeyCommand   []string          `json:"key_command,omitempty" doc:"A program that prints the key, with its arguments: for keys that expire. No shell reads it. Instead of key_env." default:"none"`
	Credentials  Credentials       `json:"credentials,omitempty" doc:"google for tokens from Google's Application Default Credentials, for Vertex AI only. Instead of key_env." default:"none" oneof:"google"`
	KeyHeader    string            `json:"key_header,omitempty" doc:"The header that carries the key. In authorization, it follows the word Bearer." default:"by dialect"`
	Headers      map[string]string `json:"headers,omitempty" doc:"Sent with every request. No secrets: use key_env for these." default:"none" free:"HEADER"`
	Limits       Limits            `json:"limits,omitzero" doc:"What the account allows, so that calls are paced before the server refuses them." default:"learned from the server"`
	ModelLimits  map[string]Limits `json:"model_limits,omitempty" doc:"Separate limits for the models that match a pattern (gpt-5*, with * for any text). All other models share limits." default:"none" free:"PATTERN"`
	Counting     Counting          `json:"counting,omitempty" doc:"How the server counts tokens against its limits: max counts max_tokens when a request arrives, used counts the tokens that are used." default:"by dialect" oneof:"max,used"`
	Stream       string            `json:"stream,omitempty" doc:"Whether answers are streamed: auto streams long ones." default:"auto" oneof:"auto,always,never"`
	HTTP2        bool              `json:"http2,omitempty" doc:"Whether to multiplex calls over HTTP/2." default:"false"`
	Timeout      time.Duration     `json:"timeout,omitempty" doc:"How long one attempt may take until its answer begins, and then until its end, or until the next line of a stream. No stream lasts longer than an hour, or this." default:"10m" range:">0s"`
	Warm         bool              `json:"warm,omitempty" doc:"Whether to send equal long prefixes once before the other calls, so that these can use the prompt cache." default:"the preset's, or false"`
	Batch        *Batch            `json:"batch,omitempty" doc:"The account's batch API, at half the price, for waves. 'batch: {}' is one with the usual limits." default:"the preset's, or none"`
	Capabilities []Capability      `json:"capabilities,omitempty" doc:"What models of this provider refuse or name differently. The first match counts." default:"the built-in table"`
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
	RPM         float64 `json:"rpm,omitempty" doc:"Requests a minute." default:"learned from the server" range:"0"`
	TPM         float64 `json:"tpm,omitempty" doc:"Tokens a minute, input and output together." default:"learned from the server" range:"0"`
	ITPM        float64 `json:"itpm,omitempty" doc:"Input tokens a minute." default:"learned from the server" range:"0"`
	OTPM        float64 `json:"otpm,omitempty" doc:"Output tokens a minute." default:"learned from the server" range:"0"`
	Concurrency int     `json:"concurrency,omitempty" doc:"The most calls in flight." default:"found by trying, from 16 up" aliases:"parallel,workers" range:"0..1000000"`
}

// Session is how a server learns which requests belong together, such as those of an episode.
type Session string

const (
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
		{Name: "anthropic", Dialect: "anthropic", Tried: "Anthropic's SDK", BaseURL: "https://api.anthropic.com/v1", KeyEnv: "ANTHROPIC_API_KEY", Counting: CountUsed, Warm: true, Batch: &Batch{}},
		{Name: "azure", Dialect: "openai", Tried: "OpenAI's SDK, Azure mode", Example: azureExample, KeyEnv: "AZURE_OPENAI_API_KEY", KeyHeader: "api-key", Counting: CountMax},
		{Name: "azure-responses", Dialect: "responses", Example: azureExample, KeyEnv: "AZURE_OPENAI_API_KEY", KeyHeader: "api-key", Counting: CountMax},
		{Name: "bedrock", Dialect: "bedrock", Tried: "the AWS SDK", Example: "https://bedrock-runtime.REGION.amazonaws.com", Counting: CountMax},
		{Name: "deepseek", Dialect: "openai", BaseURL: "https://api.deepseek.com/v1", KeyEnv: "DEEPSEEK_API_KEY"},
		{Name: "gemini", Dialect: "gemini", Tried: "Google's SDK", BaseURL: "https://generativelanguage.googleapis.com/v1beta", KeyEnv: "GEMINI_API_KEY", Batch: &Batch{}},
		{Name: "groq", Dialect: "openai", BaseURL: "https://api.groq.com/openai/v1", KeyEnv: "GROQ_API_KEY", Batch: &Batch{Bytes: 100_000_000}},
		{Name: "ollama", Dialect: "openai", BaseURL: "http://localhost:11434/v1"},
		{Name: "openai", Dialect: "openai", Tried: "OpenAI's SDK", BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY", Counting: CountMax, Batch: &Batch{}},
		{Name: "openai-responses", Dialect: "responses", Tried: "OpenAI's SDK", BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY", Counting: CountMax, Batch: &Batch{}},
		{Name: "openrouter", Dialect: "openai", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY"},
		{Name: "sglang", Dialect: "openai", BaseURL: "http://localhost:30000/v1"},
		{Name: "sim", Dialect: "sim", Tried: "is the simulated provider"},
		{Name: "vertex", Dialect: "gemini", Tried: "Google's SDK", Example: vertexExample + "google", Credentials: CredentialsGoogle, KeyHeader: "authorization"},
		{Name: "vertex-anthropic", Dialect: "anthropic", Tried: "Anthropic's SDK", Example: vertexExample + "anthropic", APIVersion: VertexVersion, Credentials: CredentialsGoogle, KeyHeader: "authorization", Counting: CountUsed, Warm: true},
		{Name: "vllm", Dialect: "openai", Tried: "the server itself", BaseURL: "http://localhost:8000/v1"},
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
