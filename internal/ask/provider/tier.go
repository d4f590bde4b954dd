package provider

// Tiers returns the names of p's service tiers, and false if nothing is known about them: its server is not a preset's. From
// the vendors' pages: OpenAI, Flex and Priority processing, 2026-08; Anthropic, Service tiers, 2026-08; Google, Gemini API
// reference (serviceTier), 2026-09; Groq, Service tiers, 2026-09; xAI, Priority processing, 2026-08; Microsoft, Enable priority
// processing for Microsoft Foundry models, 2026-11. Those of Mistral, Fireworks and AWS are from the types of their SDKs, mistralai
// 3.7.0, fireworks-ai 1.2.30 and bedrockruntime 1.63.
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
	case host == "api.fireworks.ai": // it takes flex too, as default
		return []string{"default", "priority"}, true
	case host == "api.anthropic.com", host == "api.mistral.ai":
		return []string{"auto", "standard_only"}, true
	case preset.Name == "azure" || preset.Name == "azure-responses":
		return []string{"auto", "default", "priority"}, true
	case p.Dialect == "bedrock":
		return []string{"default", "flex", "priority", "reserved"}, true
	case p.Dialect == "gemini":
		return []string{"flex", "priority", "standard"}, true
	case host == "api.groq.com":
		return []string{"auto", "flex", "on_demand", "performance"}, true
	case host == "api.x.ai":
		return []string{"default", "priority"}, true
	case host == "openrouter.ai": // it passes the tier on
		return nil, false
	default:
		return []string{}, true
	}
}
