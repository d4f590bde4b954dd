package planfile

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/internal/ask/provider"
	"parley/internal/kit/yamltree"
)

// A key may be in the wrong place: in key_env itself, under a key that does not exist (api_key), in a
// header. Errors must show the line without it. This file decides what may be a secret; it rather
// hides too much than too little.

// secretLines matches the value after a name such as api_key in text that may not be YAML.
var secretLines = regexp.MustCompile(`(?i)([a-z0-9_-]*(?:key|token|secret|password|passwd|authorization|credential|cookie|key_env|apikey)["']?)\s*[:=]\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s,{}\[\]"'#][^\n,{}\[\]#]*))`)

// userInfo matches the password of an address.
var userInfo = regexp.MustCompile(`://([^/\s@"']+)@`)

// addressEnd matches the query and the fragment of an address.
var addressEnd = regexp.MustCompile(`://[^\s"'?#]*[?#]([^\s"']+)`)

// leastValue is the length from which values of a query are hidden everywhere. Shorter ones, such as
// true, are ordinary words.
const leastValue = 8

// secretName reports whether the value of a key of that name may be a secret.
func secretName(name string) bool {
	return provider.NamesSecret(name) || envName(name)
}

// envName reports whether a key holds the name of a variable, which may be shown.
func envName(name string) bool { return strings.EqualFold(name, "key_env") }

// isEnv reports whether s is the name of an environment variable and is unlikely to be a key: capital
// letters, and in words if it is long.
func isEnv(s string) bool {
	return provider.IsVariable(s) && s == strings.ToUpper(s) && len(s) <= 64 && (len(s) < 20 || strings.Contains(s, "_"))
}

// secretsIn lists the parts of any text that may be secrets.
func secretsIn(text string) []string {
	found := provider.Secrets(text)
	for _, m := range userInfo.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	for _, m := range addressEnd.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
		for part := range strings.FieldsFuncSeq(m[1], func(r rune) bool { return strings.ContainsRune("?#&;,]}", r) }) {
			if _, value, _ := strings.Cut(part, "="); len(value) >= leastValue {
				found = append(found, value)
			}
		}
	}
	return found
}

// secretsGuessed lists the values after names such as api_key in text that is not YAML. In a prompt
// it would guess wrong, so it is not for text that is YAML.
func secretsGuessed(text string) []string {
	var found []string
	for _, m := range secretLines.FindAllStringSubmatch(text, -1) {
		value := strings.TrimSpace(m[2] + m[3] + m[4])
		if name := strings.Trim(m[1], `"'`); secretName(name) && !(envName(name) && isEnv(value)) {
			found = append(found, value)
		}
	}
	return found
}

// secretsOf lists the texts under keys that may hold secrets.
func secretsOf(n *yamltree.Node) []string {
	var found []string
	for _, f := range n.Fields {
		if f.Value.Text != "" && secretName(f.Name) && !(envName(f.Name) && isEnv(f.Value.Text)) {
			found = append(found, f.Value.Text)
			found = append(found, strings.Split(f.Value.Text, "\n")...)
		}
		found = append(found, secretsOf(f.Value)...)
	}
	for _, item := range n.Items {
		found = append(found, secretsOf(item)...)
	}
	return found
}

// Conceal adds secrets for Hide.
func (s *source) Conceal(secrets []string) {
	for _, secret := range secrets {
		// Hiding shorter ones would hide half the text.
		if len(secret) >= 4 {
			s.Secrets = append(s.Secrets, secret)
		}
	}
	// Longest first, since one may be part of another.
	slices.SortFunc(s.Secrets, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	s.Secrets = slices.Compact(s.Secrets)
}

// Hide replaces every secret of the source in a text by asterisks, one for each character, and so the
// query and fragment of every address.
func (s *source) Hide(shown string) string {
	for _, secret := range s.Secrets {
		shown = strings.ReplaceAll(shown, secret, asterisks(secret))
	}
	return addressEnd.ReplaceAllStringFunc(shown, func(address string) string {
		path := strings.IndexAny(address, "?#") + 1
		return address[:path] + asterisks(address[path:])
	})
}

func asterisks(secret string) string { return strings.Repeat("*", utf8.RuneCountInString(secret)) }
