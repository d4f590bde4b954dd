package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
)

var (
	// The name becomes a part of an address.
	envName  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)
	toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	codeName = regexp.MustCompile(`^[^:\x00-\x1f]{1,200}\.py:[A-Za-z_][A-Za-z0-9_]{0,99}$`)
)

// checkName returns an error unless a text can be the name of an environment.
func checkName(env string) error {
	if envName.MatchString(env) || IsCode(env) {
		return nil
	}
	return fmt.Errorf("%.40q: want a name of letters, digits and _ . -, or a class in Python, such as wordle.py:Wordle", env)
}

// IsCode reports whether an environment is a class in Python, such as wordle.py:Wordle.
func IsCode(env string) bool { return codeName.MatchString(env) }

// IsObject reports whether a text is a JSON object.
func IsObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return json.Valid(raw) && raw[0] == '{'
}
