package provider

import (
	"strings"
	"testing"
	"time"

	"parley/llm"
)

func TestPresets(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range Presets() {
		if p.Example != "" {
			p.BaseURL = p.Example
		}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		if seen[p.Name] {
			t.Errorf("%s is listed twice", p.Name)
		}
		seen[p.Name] = true
		if strings.HasSuffix(p.BaseURL, "/") {
			t.Errorf("%s: base_url ends with a slash", p.Name)
		}
	}
	for _, name := range []string{"openai", "anthropic", "openrouter", "gemini", "deepseek", "groq", "ollama", "vllm", "sglang"} {
		if p, ok := Lookup(name); !ok || p.Name != name {
			t.Errorf("there is no preset %s", name)
		}
	}
	if _, ok := Lookup("nobody"); ok {
		t.Error("nobody is a preset")
	}
	if err := Unknown("antropic"); !strings.Contains(err.Error(), "did you mean anthropic?") {
		t.Error(err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*Provider)
		says   []string
	}{
		{func(p *Provider) { p.Name = "" }, []string{"name"}},
		{func(p *Provider) { p.Name = "a/b" }, []string{"name", "slash"}},
		{func(p *Provider) { p.Dialect = "opanai" }, []string{"dialect", "openai", "anthropic", "did you mean openai?"}},
		{func(p *Provider) { p.Dialect = "" }, []string{"dialect", "is missing: one of anthropic"}},
		{func(p *Provider) { p.BaseURL = "" }, []string{"base_url", "missing"}},
		{func(p *Provider) { p.BaseURL = "api.example.com/v1" }, []string{"base_url", "http://"}},
		{func(p *Provider) { p.BaseURL = "ftp://x/v1" }, []string{"base_url", "https://"}},
		{func(p *Provider) { p.BaseURL = "https:///v1" }, []string{"base_url", "host"}},
		{func(p *Provider) { p.BaseURL = "http://[::1" }, []string{"base_url", "not an address"}},
		{func(p *Provider) { p.BaseURL = "https://user:hunter2@x/v1" }, []string{"base_url", "key_env"}},
		{func(p *Provider) { p.BaseURL = "https://x/v1?key=hunter2" }, []string{"base_url", "no ?"}},
		{func(p *Provider) { p.BaseURLs = []string{"https://y/v1"} }, []string{"base_urls", "not together with base_url"}},
		{func(p *Provider) { p.BaseURL, p.BaseURLs = "", []string{"https://y/v1", "ftp://y/v1", "https://y/v1/"} }, []string{"base_urls[1]", "http://", "base_urls[2]", "twice"}},
		{func(p *Provider) { p.BaseURL, p.BaseURLs = "", []string{"https://user:hunter2@x/v1"} }, []string{"base_urls[0]", "key_env"}},
		{func(p *Provider) { p.BaseURL, p.BaseURLs, p.Batch = "", []string{"https://y/v1"}, &Batch{} }, []string{"batch", "base_urls"}},
		{func(p *Provider) { p.Session = "heder" }, []string{"session", "did you mean header?"}},
		{func(p *Provider) { p.CloseSession = true }, []string{"close_session", "session: path"}},
		{func(p *Provider) { p.Metrics = "http://x/metrics" }, []string{"metrics", "/metrics"}},
		{func(p *Provider) { p.Metrics = "/a b" }, []string{"metrics", "/metrics"}},
		{func(p *Provider) { p.Dialect, p.Metrics = "sim", "/metrics" }, []string{"metrics", "for servers"}},
		{func(p *Provider) { p.KeyEnv = "sk-hunter2" }, []string{"key_env", "never the key"}},
		{func(p *Provider) { p.KeyCommand = []string{"./key.sh"} }, []string{"key_command", "PATH"}},
		{func(p *Provider) { p.KeyCommand = []string{"gcloud auth print-access-token"} }, []string{"key_command", "a list"}},
		{func(p *Provider) { p.KeyCommand = []string{""} }, []string{"key_command", "names no program"}},
		{func(p *Provider) { p.KeyEnv, p.KeyCommand = "LAB_KEY", []string{"vault"} }, []string{"key_command", "not together with key_env"}},
		{func(p *Provider) { p.KeyCommand = []string{"echo", "sk-hunter2hunter2hunter2"} }, []string{"key_command[1]", "is a key"}},
		{func(p *Provider) { p.KeyCommand = []string{"echo", "hunter2"} }, []string{"key_command", "echo prints its arguments"}},
		{func(p *Provider) { p.KeyCommand = []string{"/usr/bin/printf", "%s", "hunter2"} }, []string{"key_command", "printf prints its arguments"}},
		{func(p *Provider) { p.KeyCommand = []string{"cmd", "/c", "ECHO", "hunter2"} }, []string{"key_command", "echo prints its arguments"}},
		{func(p *Provider) { p.KeyCommand = []string{"sh", "-c", " echo 'hunter2'"} }, []string{"key_command", "echo prints its arguments"}},
		{func(p *Provider) { p.Credentials = "gogle" }, []string{"credentials", "did you mean google?"}},
		{func(p *Provider) { p.Credentials = CredentialsGoogle }, []string{"base_url", "aiplatform.googleapis.com", "key_command"}},
		{func(p *Provider) { p.Credentials, p.KeyEnv = CredentialsGoogle, "LAB_KEY" }, []string{"credentials", "not together with key_env"}},
		{func(p *Provider) { p.Credentials, p.Dialect = CredentialsGoogle, "bedrock" }, []string{"credentials", "bedrock"}},
		{func(p *Provider) { p.APIVersion = "newest" }, []string{"api_version", "2024-10-21"}},
		{func(p *Provider) { p.APIVersion = "2024-10-21" }, []string{"base_url", "ends in /v1"}},
		{func(p *Provider) { p.Dialect, p.APIVersion = "gemini", "2024-10-21" }, []string{"api_version", "Azure"}},
		{func(p *Provider) { p.Dialect, p.APIVersion = "anthropic", "2023-06-01" }, []string{"api_version", "vertex-2023-10-16"}},
		{func(p *Provider) { p.Dialect, p.Batch = "bedrock", &Batch{} }, []string{"batch", "bucket"}},
		{func(p *Provider) { *p, _ = Lookup("azure") }, []string{"base_url", "https://RESOURCE.openai.azure.com"}},
		{func(p *Provider) { p.KeyHeader = "x-key" }, []string{"key_header", "api-key"}},
		{func(p *Provider) { p.Headers = map[string]string{"Authorization": "Bearer hunter2"} }, []string{"headers", "key_env"}},
		{func(p *Provider) { p.Headers = map[string]string{"a b": "x"} }, []string{"headers", "a b"}},
		{func(p *Provider) { p.Headers = map[string]string{"a": "x\r\nb: y"} }, []string{"headers", "control"}},
		{func(p *Provider) { p.Stream = "allways" }, []string{"stream", "did you mean always?"}},
		{func(p *Provider) { p.Counting = "x" }, []string{"counting", "max, used"}},
		{func(p *Provider) { p.Timeout = -time.Second }, []string{"timeout", "more than 0s", "-1s"}},
		{func(p *Provider) { p.Limits.RPM = -1 }, []string{"limits.rpm", "at least 0"}},
		{func(p *Provider) { p.ModelLimits = map[string]Limits{"m*": {Concurrency: -1}} }, []string{"model_limits.m*.concurrency"}},
		{func(p *Provider) { p.ModelLimits = map[string]Limits{"m-[45]": {}} }, []string{"model_limits.m-[45]"}},
		{func(p *Provider) { p.Batch = &Batch{Tokens: -1} }, []string{"batch.tokens", "at least 1"}},
		{func(p *Provider) { p.Capabilities = []Capability{{Efforts: []string{"hihg"}, Thinking: "x"}} }, []string{"capabilities[0].match", "efforts", "did you mean high?", "thinking"}},
	} {
		p := Provider{Name: "lab", Dialect: "openai", BaseURL: "https://x/v1"}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		c.change(&p)
		err := p.Validate()
		if err == nil {
			t.Errorf("%+v passes the check, want an error", p)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%q does not say %q", err, s)
			}
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error %q shows a secret", err)
		}
	}
}

func TestCapability(t *testing.T) {
	t.Parallel()
	of := func(name string) Capability {
		p, m := llm.SplitModel(name)
		return Provider{Name: p}.Capability(m)
	}
	for name, ok := range map[string]func(Capability) bool{
		"openai/gpt-5-mini":                    func(c Capability) bool { return c.NoSampling && !c.UseMaxTokens && len(c.Efforts) == 4 },
		"openai/gpt-5.2":                       func(c Capability) bool { return c.NoSampling && c.SamplingAtEffortNone },
		"openai/gpt-5.6-sol":                   func(c Capability) bool { return c.NoToolEffort && !c.NoTools },
		"openai/gpt-6-astra":                   func(c Capability) bool { return c.NoTools && !c.SamplingAtEffortNone },
		"openai-responses/gpt-6-astra":         func(c Capability) bool { return !c.NoTools && c.NoSampling && c.MaxOutput == 128_000 },
		"openai/gpt-5.2-chat-latest":           func(c Capability) bool { return len(c.Efforts) == 0 },
		"openai/o3-mini":                       func(c Capability) bool { return c.NoSampling && c.NoStop },
		"openai/gpt-4.1":                       func(c Capability) bool { return !c.NoSampling && c.CacheKey },
		"anthropic/claude-opus-5-5":            func(c Capability) bool { return c.Thinking == ThinkingAlways && c.NoForce && c.NoPrefill },
		"anthropic/claude-opus-5":              func(c Capability) bool { return c.Thinking == ThinkingDefault && !c.NoForce },
		"anthropic/claude-haiku-5-5":           func(c Capability) bool { return c.Thinking == ThinkingDefault },
		"anthropic/claude-opus-4-7":            func(c Capability) bool { return c.NoSampling && c.Thinking == ThinkingAdaptive },
		"anthropic/claude-sonnet-4-6":          func(c Capability) bool { return !c.NoSampling && c.NoPrefill },
		"anthropic/claude-sonnet-4-5-20250929": func(c Capability) bool { return c.Thinking == ThinkingBudget && !c.NoSchema && len(c.Efforts) == 0 },
		"anthropic/claude-3-5-haiku-latest":    func(c Capability) bool { return c.NoSchema && c.MaxOutput == 8192 },
		"openrouter/anthropic/claude-opus-5.5": func(c Capability) bool { return c.UseMaxTokens && !c.NoSampling },
		"gemini/gemini-3.6-flash":              func(c Capability) bool { return c.NoSeed && c.NoPenalties },
		"deepseek/deepseek-v4-pro":             func(c Capability) bool { return c.NoSchema && c.SendReasoningBack },
		"groq/openai/gpt-oss-120b":             func(c Capability) bool { return c.NoLogprobs && !c.NoSchema },
		"groq/llama-3.3-70b-versatile":         func(c Capability) bool { return c.NoSchema },
		"vllm/any":                             func(c Capability) bool { return c.TokenIDs && c.TopK },
		"lab/any":                              func(c Capability) bool { return c.Match == "" },
	} {
		if c := of(name); !ok(c) {
			t.Errorf("%s: %+v", name, c)
		}
	}
	p := Provider{Name: "openai", Capabilities: []Capability{{Match: "OpenAI/gpt-5*", NoTools: true}, {Match: "*", NoSeed: true}}}
	if c := p.Capability("gpt-5"); !c.NoTools || c.NoSampling {
		t.Errorf("an override does not win: %+v", c)
	}
	if c := p.Capability("other"); !c.NoSeed {
		t.Errorf("the first match does not win: %+v", c)
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a*", "abc", true}, {"*c", "abc", true}, {"a*c*e", "abcde", true}, {"a?c", "abc", true}, {"a?c", "ac", false},
		{"*", "", true}, {"", "", true}, {"", "a", false}, {"a", "", false}, {"a*b", "aXbXb", true}, {"A*", "abc", true}, {"*/x", "p/q/x", true}, {"abc", "abcd", false},
		{strings.Repeat("*a", 30) + "b", strings.Repeat("a", 200), false},
	} {
		if got := Matches(c.pattern, c.name); got != c.want {
			t.Errorf("match(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

func TestEffort(t *testing.T) {
	t.Parallel()
	c := Capability{Efforts: []string{"low", "high", "max"}}
	for e, want := range map[llm.Effort]string{"none": "low", "minimal": "low", "low": "low", "medium": "high", "high": "high", "xhigh": "high", "max": "max", "": "", "nonsense": ""} {
		if got, ok := c.Effort(e); got != want || ok != (want != "") {
			t.Errorf("Effort(%q) = %q, want %q", e, got, want)
		}
	}
	if _, ok := (Capability{}).Effort("high"); ok {
		t.Error("a model without efforts takes one")
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	one := Provider{Name: "lab", Dialect: "openai", BaseURL: "https://x/v1"}
	if s := one.Servers(); len(s) != 1 || s[0].BaseURL != one.BaseURL || one.HasSessions() {
		t.Errorf("%+v", s)
	}
	two := Provider{Name: "lab", Dialect: "openai", BaseURLs: []string{"https://x/v1", "https://y/v1"}, Session: SessionPath, CloseSession: true, Metrics: "/metrics"}
	if err := two.Validate(); err != nil || !two.HasSessions() {
		t.Error(err)
	}
	for i, s := range two.Servers() {
		if err := s.Validate(); err != nil || s.BaseURL != two.BaseURLs[i] || s.BaseURLs != nil || s.Name != "lab" {
			t.Errorf("%+v, %v", s, err)
		}
	}
	one.Session = SessionHeader
	if !one.HasSessions() {
		t.Error("a header without sessions")
	}
}

func TestBatchLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    Provider
		want Batch
		ok   bool
	}{
		{Provider{Dialect: "openai"}, Batch{}, false},
		{Provider{Dialect: "sim", Batch: &Batch{}}, Batch{}, false},
		{Provider{Dialect: "openai", Batch: &Batch{}}, Batch{Requests: 50_000, Bytes: 200_000_000, PerHour: 2000}, true},
		{Provider{Dialect: "anthropic", Batch: &Batch{Tokens: 7}}, Batch{Requests: 100_000, Bytes: 256_000_000, PerHour: 2000, Tokens: 7}, true},
		{Provider{Dialect: "gemini", Batch: &Batch{}}, Batch{Requests: 100_000, Bytes: 2_000_000_000, PerHour: 2000}, true},
		{Provider{Dialect: "openai", Batch: &Batch{API: "azure"}}, Batch{API: "azure", Requests: 100_000, Bytes: 200_000_000, PerHour: 2000}, true},
		{Provider{Dialect: "anthropic", Batch: &Batch{API: "azure"}}, Batch{}, false},
		{Provider{Dialect: "bedrock", Batch: &Batch{}}, Batch{}, false},
		{Provider{Dialect: "responses", Batch: &Batch{Requests: 5, Bytes: 6, PerHour: 7}}, Batch{Requests: 5, Bytes: 6, PerHour: 7}, true},
	} {
		if got, ok := c.p.BatchLimits(); got != c.want || ok != c.ok {
			t.Errorf("%+v: %+v, %v", c.p, got, ok)
		}
	}
}

// TestOwnAddress: a preset whose address differs by account is known at all its addresses, and nowhere else.
func TestOwnAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		preset, address string
		known           bool
	}{
		{"azure", "https://lab.openai.azure.com/openai/v1", true},
		{"azure", "https://lab.openai.azure.com.evil.example/openai/v1", false},
		{"azure", "http://lab.openai.azure.com/openai/v1", false},
		{"vertex", "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/publishers/google", true},
		{"vertex", "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google", true},
		{"vertex", "https://googleapis.com.example/v1", false},
		{"bedrock", "https://bedrock-runtime.eu-central-1.amazonaws.com", true},
		{"bedrock", "https://bedrock-runtime.eu-central-1.evil.example", false},
	} {
		p, ok := Lookup(c.preset)
		if !ok {
			t.Fatal(c.preset)
		}
		p.BaseURL = c.address
		if err := p.Validate(); (err == nil) != (c.known || p.Credentials == "" && !p.Signs()) { // the credentials of Google and AWS are for nobody else
			t.Errorf("%s at %s: %v", c.preset, c.address, err)
		}
		if p.KeepsLimits() != c.known {
			t.Errorf("%s at %s: known %v", c.preset, c.address, !c.known)
		}
	}
}

// TestBatchAPIOf: every preset with a batch API has one that its dialect speaks, and a wrong one is
// refused.
func TestBatchAPIOf(t *testing.T) {
	t.Parallel()
	with := map[string]string{}
	for _, p := range Presets() {
		if p.Batch != nil {
			with[p.Name] = p.BatchAPI()
		}
	}
	for name, want := range map[string]string{
		"anthropic": "anthropic", "gemini": "gemini", "groq": "openai", "openai": "openai", "openai-responses": "openai",
	} {
		if with[name] != want {
			t.Errorf("%s: %q, want %q", name, with[name], want)
		}
	}
	vertex := Provider{Name: "v", Dialect: "gemini", BaseURL: "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google", Batch: &Batch{}}
	claude := vertex
	claude.Dialect, claude.APIVersion = "anthropic", VertexVersion
	for _, p := range []Provider{vertex, claude} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "Vertex AI") || !strings.Contains(err.Error(), "bucket") {
			t.Errorf("%s on Vertex AI: %v", p.Dialect, err)
		}
	}
	for api, want := range map[string]string{"azure": "does not take requests of the dialect anthropic", "azur": "did you mean azure"} {
		p := Provider{Name: "lab", Dialect: "anthropic", BaseURL: "https://x/v1", Batch: &Batch{API: api}}
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "batch.api") {
			t.Errorf("%s: %v", api, err)
		}
	}
}

func TestTiers(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"openai": "auto default flex priority", "openai-responses": "auto default flex priority", "anthropic": "auto standard_only",
		"gemini": "flex priority standard", "deepseek": "", "sim": "?", "vllm": "?", "openrouter": "?",
		"azure": "auto default priority", "azure-responses": "auto default priority", "bedrock": "default flex priority reserved", "vertex": "flex priority standard",
	} {
		p, _ := Lookup(name)
		if p.Example != "" {
			p.BaseURL = strings.NewReplacer("RESOURCE", "ours", "REGION", "eu-west-1", "PROJECT", "p").Replace(p.Example)
		}
		tiers, known := p.Tiers()
		if got := strings.Join(tiers, " "); known != (want != "?") || known && got != want {
			t.Errorf("%s: %q, %v", name, got, known)
		}
		if p.BaseURL = "https://elsewhere/v1"; !p.InProcess() {
			if _, known := p.Tiers(); known {
				t.Errorf("%s elsewhere: nothing is known", name)
			}
		}
	}
}

// TestGoogleHosts: Google's credentials go to Vertex AI and to this machine, and nowhere else.
func TestGoogleHosts(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://europe-west4-aiplatform.googleapis.com/v1":             true,
		"https://aiplatform.googleapis.com/v1":                          true,
		"https://aiplatform.eu.rep.googleapis.com/v1":                   true,
		"http://127.0.0.1:8080/v1":                                      true,
		"http://localhost:8080/v1":                                      true,
		"http://aiplatform.googleapis.com/v1":                           false, // anybody could read it
		"https://storage.googleapis.com/v1":                             false,
		"https://evil-aiplatform.googleapis.com.evil.example/v1":        false,
		"https://aiplatform.googleapis.com.evil.example/v1":             false,
		"https://evilaiplatform.googleapis.com/v1":                      false,
		"https://aiplatform.googleapis.com:443@evil.example/v1":         false,
		"https://generativelanguage.googleapis.com/v1beta":              false,
		"https://evil.example/v1#https://aiplatform.googleapis.com":     false,
		"https://aiplatform.evil.example.rep.googleapis.com.example/v1": false,
	} {
		for _, p := range []Provider{
			{Name: "v", Dialect: "gemini", BaseURL: address, Credentials: CredentialsGoogle},
			{Name: "v", Dialect: "gemini", BaseURLs: []string{"https://aiplatform.googleapis.com/v1beta1", address}, Credentials: CredentialsGoogle},
		} {
			if err := p.Validate(); (err == nil) != want {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
	if (Provider{Dialect: "gemini", Credentials: CredentialsGoogle}).Origin() == (Provider{Dialect: "gemini"}).Origin() {
		t.Error("the origin does not say whose credentials")
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	p := Provider{Name: "lab", Dialect: "openai", BaseURL: "https://a.example/v1", KeyEnv: "LAB_KEY"}
	with := func(change func(*Provider)) Provider {
		q := p
		change(&q)
		return q
	}
	for name, q := range map[string]Provider{
		"another name":      with(func(q *Provider) { q.Name = "other" }),
		"a slash":           with(func(q *Provider) { q.BaseURL += "/" }),
		"one of one":        with(func(q *Provider) { q.BaseURL, q.BaseURLs = "", []string{"https://a.example/v1"} }),
		"limits":            with(func(q *Provider) { q.Limits.RPM = 5 }),
		"the same, written": with(func(q *Provider) { q.Headers = map[string]string{} }),
	} {
		if q.Origin() != p.Origin() {
			t.Errorf("%s: the origin is another", name)
		}
	}
	seen := map[[32]byte]string{p.Origin(): "itself"}
	for name, q := range map[string]Provider{
		"address":       with(func(q *Provider) { q.BaseURL = "https://b.example/v1" }),
		"port":          with(func(q *Provider) { q.BaseURL = "https://a.example:8443/v1" }),
		"two servers":   with(func(q *Provider) { q.BaseURLs = []string{"https://a.example/v1", "https://b.example/v1"} }),
		"dialect":       with(func(q *Provider) { q.Dialect = "responses" }),
		"key variable":  with(func(q *Provider) { q.KeyEnv = "OTHER_KEY" }),
		"organization":  with(func(q *Provider) { q.Headers = map[string]string{"OpenAI-Organization": "org-1"} }),
		"another one":   with(func(q *Provider) { q.Headers = map[string]string{"OpenAI-Organization": "org-2"} }),
		"another field": with(func(q *Provider) { q.Dialect, q.KeyEnv = "openaiLAB", "_KEY" }),
	} {
		if same := seen[q.Origin()]; same != "" {
			t.Errorf("%s: the same origin as %s", name, same)
		}
		seen[q.Origin()] = name
	}
}
