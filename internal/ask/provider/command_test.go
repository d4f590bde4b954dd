package provider

import (
	"strings"
	"testing"
)

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
