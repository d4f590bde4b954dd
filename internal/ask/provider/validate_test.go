package provider

import (
	"strings"
	"testing"
)

// TestLiteralKeys: a key is refused anywhere in an entry, and never repeated.
func TestLiteralKeys(t *testing.T) {
	t.Parallel()
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.c2lnbmF0dXJlaHVudGVyMg"
	for _, key := range []string{
		"sk-hunter2hunter2hunter2", "sk-ant-api03-hunter2hunter2hunter2", "sk-proj-hunter2_hunter2-hunter2", "AIzahunter2hunter2hunter2hunter2hunter2",
		"gsk_hunter2hunter2hunter2", "xai-hunter2hunter2hunter2", "hf_hunter2hunter2hunter2", "ghp_hunter2hunter2hunter2", "github_pat_11hunter2hunter2hunter2",
		"AKIAIOSFODNN7EXAMPLE", jwt, "Bearer hunter2hunter2", "bearer hunter2hunter2", "Basic aHVudGVyMjpodW50ZXIy",
	} {
		for field, change := range map[string]func(*Provider){
			"headers.X-Team": func(p *Provider) { p.Headers = map[string]string{"X-Team": key} },
			"base_url":       func(p *Provider) { p.BaseURL = "https://x/" + key + "/v1" },
			"base_urls[1]":   func(p *Provider) { p.BaseURL, p.BaseURLs = "", []string{"https://x", "https://x/v1/" + key} },
		} {
			p := Provider{Name: "lab", Dialect: "openai", BaseURL: "https://x/v1"}
			if change(&p); strings.Contains(key, " ") && field != "headers.X-Team" {
				continue
			}
			err := p.Validate()
			if err == nil || !strings.Contains(err.Error(), field+": ") || !strings.Contains(err.Error(), "key_env") || strings.Contains(err.Error(), key) {
				t.Errorf("%s %s: %v", field, key, err)
			}
		}
		if len(Secrets("  x: "+key+"\n")) == 0 {
			t.Errorf("%s would be shown", key)
		}
	}
	for _, name := range []string{"Authorization", "x-api-key", "API-Key", "X-Goog-Api-Key", "X-Auth-Token"} {
		p := Provider{Name: "lab", Dialect: "openai", BaseURL: "https://x/v1", Headers: map[string]string{name: "hunter2"}}
		if err := p.Validate(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, value := range []string{"${LAB_KEY}", "$LAB_KEY", "{{ env.LAB_KEY }}"} {
		p := Provider{Name: "lab", Dialect: "openai", BaseURL: "https://x/v1", Headers: map[string]string{"X-Team": value}}
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "not replaced") {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestNoLiteralKeys: a value that only resembles a key is accepted.
func TestNoLiteralKeys(t *testing.T) {
	t.Parallel()
	for _, p := range []Provider{
		{BaseURL: "https://hf-inference-proxy-eu-west-1.example.com/v1"},
		{BaseURL: "https://sk-hynix-models-4711-internal.example.com/v1"},
		{BaseURL: "https://x/openai/deployments/gpt-5-mini-2026-01-01/v1"},
		{BaseURL: "https://x/v1", Headers: map[string]string{
			"OpenAI-Organization": "org-1234567890abcdefghij", "Anthropic-Beta": "prompt-caching-2024-07-31", "HTTP-Referer": "https://lab.example/a?b=c",
			"X-Id": "0b2f7a52-9c4d-4d5e-8f27-1234567890ab", "X-Price": "$5", "X-Title": "Token counting of a market",
		}},
	} {
		p.Name, p.Dialect = "lab", "openai"
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// TestPrinters: a program that prints what the plan says has the key in the plan. One to which a shell gives the key has not.
func TestPrinters(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{
		{"cat", "/run/echo"}, {"gcloud", "auth", "echo"}, {"sh", "-c", "echo $LAB_KEY"}, {"bash", "-c", "printf %s $(pass show lab)"}, {"sh", "/opt/key.sh"}, {"python3", "-c", "print(1)"},
		{"sh", "/opt/keys/echo"}, {"sh", "-c", "pass show lab", "echo"}, {"bash", "-lc", "pass show lab"}, {"env", "PASS=echo", "pass", "show"}, {"env"}, {"sh", "-c"},
		{"cmd", "/c", "type", "echo"}, {"sh", "-c", "echo `pass show lab`"}, {"cmd", "/c", "echo %LAB_KEY%"}, {"sh", "/opt/key.sh", "-c", "echo"}, {"bash", "-o", "pipefail", "-c", "pass show lab"},
	} {
		p := Provider{Name: "lab", Dialect: "openai", BaseURL: "https://x/v1", KeyCommand: command}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, command := range [][]string{
		{"env", "echo", "KEY"}, {"/usr/bin/env", "-i", "A=b", "printf", "KEY"}, {"env", "-u", "A", "echo", "KEY"}, {"env", "--", "sh", "-c", "echo KEY"}, {"bash", "-lc", "echo KEY"}, {"bash", "-o", "pipefail", "-c", "printf KEY"},
		{"cmd.exe", "/d", "/C", "echo", "KEY"}, {"pwsh", "-NoProfile", "-Command", "Write-Output", "KEY"}, {"echo", "$KEY"},
	} {
		p := Provider{Name: "lab", Dialect: "openai", BaseURL: "https://x/v1", KeyCommand: command}
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "prints its arguments") {
			t.Errorf("%v: %v", command, err)
		}
	}
}

// TestSignedHosts: requests are signed for Bedrock and for this machine, and for no other host.
func TestSignedHosts(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://bedrock-runtime.eu-west-1.amazonaws.com":                true,
		"https://bedrock-runtime-fips.us-east-1.amazonaws.com":           true,
		"https://vpce-0a-b.bedrock-runtime.eu-west-1.vpce.amazonaws.com": true,
		"https://bedrock-runtime.cn-north-1.amazonaws.com.cn":            true,
		"http://127.0.0.1:8080":                                          true,
		"http://localhost:8080":                                          true,
		"http://bedrock-runtime.eu-west-1.amazonaws.com":                 false,
		"http://192.0.2.2:18181":                                         false,
		"https://bedrock-runtime.eu-west-1.amazonaws.com.evil.example":   false,
		"https://bucket.s3.amazonaws.com":                                false,
		"https://evil.example/bedrock-runtime.eu-west-1.amazonaws.com":   false,
		"https://bedrock.eu-west-1.amazonaws.com":                        false, // it lists models, and answers no calls
		"https://bedrock-fips.us-east-1.amazonaws.com":                   false,
		"https://bedrock-agent.eu-west-1.amazonaws.com":                  false,
		"https://xbedrock-runtime.eu-west-1.amazonaws.com":               false,
	} {
		if got := GetsSignature(address); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
		p, _ := Lookup("bedrock")
		p.BaseURL = address
		if err := p.Validate(); (err == nil) != want || err != nil && (!strings.Contains(err.Error(), "base_url") || !strings.Contains(err.Error(), "key_env")) {
			t.Errorf("%s: %v", address, err)
		}
		p.KeyEnv = "BEDROCK_KEY"
		if err := p.Validate(); (err != nil) != onlyLists.MatchString(hostOf(address)) || err != nil && !strings.Contains(err.Error(), "https://bedrock-runtime.REGION.") {
			t.Errorf("%s with a key: %v", address, err)
		}
	}
}

// TestErrorsHaveAnOrder: the text of an error is the same every time.
func TestErrorsHaveAnOrder(t *testing.T) {
	t.Parallel()
	bad := map[string]string{}
	limits := map[string]Limits{}
	for name := range strings.SplitSeq("a b c d e f g h", " ") {
		bad[name], limits[name] = "Bearer hunter2hunter2\n", Limits{RPM: -1}
	}
	for _, p := range []Provider{
		{Name: "lab", Dialect: "openai", BaseURL: "https://x/v1", Headers: bad, ModelLimits: limits},
		{Name: "lab", Dialect: "sim", BaseURLs: []string{"https://x/v1"}, Session: SessionPath, CloseSession: true, Metrics: "/metrics"},
	} {
		want := p.Validate().Error()
		for range 20 {
			if got := p.Validate().Error(); got != want {
				t.Fatalf("got\n%s\nwant\n%s", got, want)
			}
		}
	}
}
