package provider

import (
	"net/url"
	"regexp"
	"strings"
)

// maybeKey matches keys of well-known vendors anywhere. It is for hiding, and matches rather too much than too little.
var maybeKey = regexp.MustCompile(`\b(?:sk|pk|rk|gsk|xai|hf|gh[pousr]|github_pat|glpat|r8|nvapi|pplx|tgp|fw|(?i:Bearer|Basic|Token))[-_ ][A-Za-z0-9+/_=.-]{12,}|\bAIza[A-Za-z0-9_-]{20,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_.-]+`)

// surelyKey is for refusing: a prefix that means a key, and a body like that of a key.
var surelyKey = regexp.MustCompile(`\b(?:sk-|sk_|rk_|gsk_|xai-|hf_|gh[pousr]_|github_pat_|glpat-|r8_|nvapi-|pplx-|tgp_)[A-Za-z0-9_-]{16,}|\bAIza[A-Za-z0-9_-]{30,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.|^\s*(?i:Bearer|Basic|Token)\s+\S{8,}\s*$`)

// Secrets lists the parts of a text that may be keys.
func Secrets(text string) []string { return maybeKey.FindAllString(text, -1) }

// isKey reports whether a value looks like it holds a key.
func isKey(value string) bool { return surelyKey.MatchString(value) }

// isReference reports whether a value looks like a variable for a shell or another program: ${LAB_KEY}, {{LAB_KEY}}.
func isReference(value string) bool { return references.MatchString(value) }

var references = regexp.MustCompile(`\$\{?[A-Za-z_][A-Za-z0-9_]*\}?|\{\{.*\}\}`)

// secretHeaders lists headers that carry keys, whatever their value.
func secretHeaders() []string {
	return []string{
		"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "apikey", "x-goog-api-key", "x-auth-token",
		"x-access-token", "x-amz-security-token", "private-token", "ocp-apim-subscription-key",
	}
}

// checkSecrets refuses keys in places where only the name of a variable belongs. No message repeats the key.
func (p Provider) checkSecrets(bad complain) {
	const remedy = "put it into an environment variable and name that in key_env"
	for name, value := range p.Headers {
		switch {
		case isKey(value):
			bad(path{"headers", name}, "its value is a key, which must not be here: %s", remedy)
		case isReference(value):
			bad(path{"headers", name}, "variables are not replaced here: name the one with the key in key_env")
		}
	}
	if holdsKey(p.BaseURL) {
		bad(path{"base_url"}, "holds a key, which must not be here: %s", remedy)
	}
	for i, u := range p.BaseURLs {
		if holdsKey(u) {
			bad(item("base_urls", i), "holds a key, which must not be here: %s", remedy)
		}
	}
	if holdsKey(p.Metrics) {
		bad(path{"metrics"}, "holds a key, which must not be here: %s", remedy)
	}
	for i, word := range p.KeyCommand {
		if isKey(word) {
			bad(item("key_command", i), "is a key, which must not be here: key_command is a program that prints the key")
		}
	}
	for i, c := range p.Capabilities {
		if isKey(c.SeedField) {
			bad(item("capabilities", i, "seed_field"), "is a key, which must not be here: %s", remedy)
		}
	}
}

// holdsKey looks for a key in an address, except in its host.
func holdsKey(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return isKey(address)
	}
	for part := range strings.FieldsFuncSeq(u.Path+" "+u.RawQuery+" "+u.Fragment, func(r rune) bool { return strings.ContainsRune("/&=? ", r) }) {
		if isKey(part) {
			return true
		}
	}
	return false
}
