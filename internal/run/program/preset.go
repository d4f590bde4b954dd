package program

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/kit/process"
	"parley/world"
)

// Marker is the environment variable that a plan must not set.
const Marker = process.Marker

// Preset is a program that Parley knows.
type Preset struct {
	world.Program
	Doc string // one line
	// Install is the command that installs it. Empty: it comes with Parley.
	Install string
	// NeedsModel and NoModel say whether it asks a model. Neither: it may.
	NeedsModel, NoModel bool
}

// The programs that are part of this one.
const (
	nop    = "nop"
	Oracle = "oracle"
	shell  = "shell"
)

// Find returns a preset. The one without a name is that of any command.
func Find(name string) (Preset, bool) {
	p, ok := presets()[name]
	p.Preset = name
	return p, ok || name == ""
}

// Names lists the presets.
func Names() []string { return slices.Sorted(maps.Keys(presets())) }

// Permission returns what a user must allow before a program is started: the preset, or the command. What a plan adds to it is part of
// that, since it may make the program another one. Empty: nothing need be allowed, because it runs nothing of its own.
func Permission(p world.Program) string {
	switch own := Own(p); {
	case own == nop || own == Oracle:
		return ""
	case len(p.Env)+len(p.Files) == 0 && len(p.Command) == 0:
		return p.Preset
	}
	name := provider.CommandLine(p.Command)
	if len(p.Command) == 0 {
		name = p.Preset
	}
	if len(p.Env)+len(p.Files) == 0 {
		return name
	}
	b, err := json.Marshal([]any{p.Env, p.Files})
	if err != nil {
		return name + " with what cannot be written"
	}
	sum := sha256.Sum256(b)
	return name + " with " + hex.EncodeToString(sum[:6])
}

// Missing says why a program of this machine cannot be started, and what to do. Empty: it can, or is part of this one.
func Missing(p world.Program) string {
	preset, _ := Find(p.Preset)
	p, _ = resolve(p)
	if len(p.Command) == 0 || strings.Contains(p.Command[0], "{") {
		return ""
	}
	if _, err := exec.LookPath(p.Command[0]); err == nil {
		return ""
	}
	why, todo := " is not in PATH", "Install it, or give its whole path, as program: {command: [/path/to/it]}"
	if strings.ContainsAny(p.Command[0], `/\`) {
		why, todo = " cannot be started", "Correct the path, or make the file executable"
	} else if preset.Install != "" {
		todo = "Install it (" + preset.Install + "), or give its whole path in command"
	}
	return clean(p.Command[0]) + why + ". " + todo
}

// Unasked reports whether a program would not get its question: it wants it in place of {prompt}, and that is nowhere.
func Unasked(p world.Program) bool {
	p, _ = resolve(p)
	if p.Input != "argument" || len(p.Command) == 0 {
		return false
	}
	texts := slices.AppendSeq(slices.Clone(p.Command), maps.Values(p.Env))
	texts = slices.AppendSeq(texts, maps.Values(p.Files))
	return !slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, "{prompt}") })
}

// resolve returns a program with what its preset adds to it.
func resolve(p world.Program) (world.Program, bool) {
	known, ok := Find(p.Preset)
	out := known.Program
	if p.Command != nil {
		out.Command = p.Command
	}
	if p.Input != "" {
		out.Input = p.Input
	}
	if p.Format != "" {
		out.Format = p.Format
	}
	out.Env, out.Files = merged(out.Env, p.Env), merged(out.Files, p.Files)
	out.Ignore = append(slices.Clone(out.Ignore), p.Ignore...)
	return out, ok
}

func merged(a, b map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// presets are the programs that Parley knows, as commands that ask nobody and send nothing to anybody but their model's server. The gateway
// knows what differs by itself between two starts of them.
func presets() map[string]Preset {
	return map[string]Preset{
		nop:    {Doc: "does nothing, and should score nothing", NoModel: true},
		Oracle: {Doc: "runs the solution that a task has, and should score all", NoModel: true},
		shell:  {Doc: "Parley's own small agent: it runs the shell commands that its model writes", NeedsModel: true, Program: world.Program{Format: "openai"}},
		"claude-code": {Doc: "Claude Code", Install: "npm install -g @anthropic-ai/claude-code", NeedsModel: true, Program: world.Program{
			Command: []string{"claude", "-p", "--verbose", "--output-format", "text", "--permission-mode", "bypassPermissions"},
			Format:  "anthropic",
			Env: map[string]string{
				"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_AUTH_TOKEN": "{key}", "ANTHROPIC_MODEL": "{model}",
				"ANTHROPIC_DEFAULT_OPUS_MODEL": "{model}", "ANTHROPIC_DEFAULT_SONNET_MODEL": "{model}", "ANTHROPIC_DEFAULT_HAIKU_MODEL": "{model}", "CLAUDE_CODE_SUBAGENT_MODEL": "{model}",
				"CLAUDE_CONFIG_DIR": "{home}/.claude", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
				"IS_SANDBOX": "1", // as root, it refuses bypassPermissions otherwise
			},
		}},
		"codex": {Doc: "Codex", Install: "npm install -g @openai/codex", NeedsModel: true, Program: world.Program{
			Command: []string{"codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "-m", "{model}", "--", "{prompt}"},
			Input:   "argument", Format: "responses",
			Env: map[string]string{"CODEX_HOME": "{home}/.codex", "PARLEY_KEY": "{key}"},
			Files: map[string]string{".codex/config.toml": `model_provider = "parley"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.parley]
name = "parley"
base_url = "{url}/v1"
env_key = "PARLEY_KEY"
wire_api = "responses"
supports_websockets = false
`},
		}},
		"gemini-cli": {Doc: "Gemini CLI", Install: "npm install -g @google/gemini-cli", NeedsModel: true, Program: world.Program{
			Command: []string{"gemini", "--yolo", "--skip-trust", "--model", "{model}", "-p", "{prompt}"},
			Input:   "argument", Format: "gemini",
			Env: map[string]string{"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "{key}", "GEMINI_CLI_HOME": "{home}", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
			Files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false}}
`},
		}},
		"opencode": {Doc: "opencode", Install: "npm install -g opencode-ai", NeedsModel: true, Program: world.Program{
			Command: []string{"opencode", "run", "--auto", "-m", "parley/{model}", "--", "{prompt}"},
			Input:   "argument", Format: "openai",
			Env: map[string]string{
				"OPENCODE_CONFIG_CONTENT":     `{"provider":{"parley":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"{url}/v1","apiKey":"{key}"},"models":{"{model}":{}}}},"small_model":"parley/{model}","share":"disabled"}`,
				"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1", "OPENCODE_DISABLE_CLAUDE_CODE": "1",
				"XDG_DATA_HOME": "{home}/.local/share", "XDG_STATE_HOME": "{home}/.local/state", "XDG_CONFIG_HOME": "{home}/.config", "XDG_CACHE_HOME": "{home}/.cache",
			},
		}},
		"aider": {Doc: "aider", Install: "python3 -m pip install aider-chat", NeedsModel: true, Program: world.Program{
			Command: []string{
				"aider", "--yes-always", "--no-git", "--no-show-model-warnings", "--analytics-disable", "--no-check-update", "--no-show-release-notes", "--disable-playwright", "--no-pretty", "--no-stream",
				"--chat-history-file", "{home}/chat.md", "--input-history-file", "{home}/input", "--model", "openai/{model}", "--message", "{prompt}",
			},
			Input: "argument", Format: "openai",
			Env: map[string]string{"OPENAI_API_BASE": "{url}/v1", "OPENAI_API_KEY": "{key}", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
		}},
		"mini-swe-agent": {Doc: "mini-swe-agent", Install: "python3 -m pip install mini-swe-agent", NeedsModel: true, Program: world.Program{
			Command: []string{"mini", "--yolo", "--exit-immediately", "-m", "openai/{model}", "-c", "mini.yaml", "-c", "model.model_kwargs.api_base={url}/v1", "-t", "{prompt}", "-o", "{home}/trajectory.json"},
			Input:   "argument", Format: "openai",
			Env: map[string]string{"OPENAI_API_KEY": "{key}", "MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors", "MSWEA_GLOBAL_CONFIG_DIR": "{home}/.mini", "MSWEA_SILENT_STARTUP": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
		}},
	}
}

// variables are those by which programs find the server of a format.
func variables(format string) map[string]string {
	all := map[string]map[string]string{
		"openai":    {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_BASE": "{url}/v1", "OPENAI_API_KEY": "{key}"},
		"anthropic": {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "{key}"},
		"gemini":    {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "{key}"},
	}
	all["responses"] = all["openai"]
	if format != "" {
		return all[format]
	}
	out := map[string]string{}
	for _, own := range all {
		maps.Copy(out, own)
	}
	return out
}
