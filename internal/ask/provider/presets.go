package provider

// Presets lists the providers that are known by name, sorted by name, with each vendor's names together.
func Presets() []Provider {
	return []Provider{
		{Name: "anthropic", Dialect: "anthropic", BaseURL: "https://api.anthropic.com/v1", KeyEnv: "ANTHROPIC_API_KEY", Counting: CountUsed, Warm: true, Batch: &Batch{}},
		{Name: "azure", Dialect: "openai", Example: azureExample, KeyEnv: "AZURE_OPENAI_API_KEY", KeyHeader: "api-key", Counting: CountMax},
		{Name: "azure-responses", Dialect: "responses", Example: azureExample, KeyEnv: "AZURE_OPENAI_API_KEY", KeyHeader: "api-key", Counting: CountMax},
		{Name: "bedrock", Dialect: "bedrock", Example: "https://bedrock-runtime.REGION.amazonaws.com", Counting: CountMax},
		{Name: "cohere", Dialect: "openai", BaseURL: "https://api.cohere.ai/compatibility/v1", KeyEnv: "COHERE_API_KEY"},
		{Name: "deepseek", Dialect: "openai", BaseURL: "https://api.deepseek.com/v1", KeyEnv: "DEEPSEEK_API_KEY"},
		{Name: "fireworks", Dialect: "openai", BaseURL: "https://api.fireworks.ai/inference/v1", KeyEnv: "FIREWORKS_API_KEY"},
		{Name: "gemini", Dialect: "gemini", BaseURL: "https://generativelanguage.googleapis.com/v1beta", KeyEnv: "GEMINI_API_KEY", Batch: &Batch{}},
		{Name: "gemini-openai", Dialect: "openai", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", KeyEnv: "GEMINI_API_KEY"},
		{Name: "groq", Dialect: "openai", BaseURL: "https://api.groq.com/openai/v1", KeyEnv: "GROQ_API_KEY", Batch: &Batch{Bytes: 100_000_000}},
		{Name: "mistral", Dialect: "openai", BaseURL: "https://api.mistral.ai/v1", KeyEnv: "MISTRAL_API_KEY", Batch: &Batch{API: "mistral"}},
		{Name: "ollama", Dialect: "openai", BaseURL: "http://localhost:11434/v1"},
		{Name: "openai", Dialect: "openai", BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY", Counting: CountMax, Batch: &Batch{}},
		{Name: "openai-responses", Dialect: "responses", BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY", Counting: CountMax, Batch: &Batch{}},
		{Name: "openrouter", Dialect: "openai", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY"},
		{Name: "sglang", Dialect: "openai", BaseURL: "http://localhost:30000/v1"},
		{Name: "sim", Dialect: "sim"},
		{Name: "together", Dialect: "openai", BaseURL: "https://api.together.xyz/v1", KeyEnv: "TOGETHER_API_KEY", Batch: &Batch{API: "together"}},
		{Name: "vertex", Dialect: "gemini", Example: vertexExample + "google", Credentials: CredentialsGoogle, KeyHeader: "authorization"},
		{Name: "vertex-anthropic", Dialect: "anthropic", Example: vertexExample + "anthropic", APIVersion: VertexVersion, Credentials: CredentialsGoogle, KeyHeader: "authorization", Counting: CountUsed, Warm: true},
		{Name: "vllm", Dialect: "openai", BaseURL: "http://localhost:8000/v1"},
		{Name: "xai", Dialect: "openai", BaseURL: "https://api.x.ai/v1", KeyEnv: "XAI_API_KEY", Batch: &Batch{API: "xai"}},
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
