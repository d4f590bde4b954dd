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
