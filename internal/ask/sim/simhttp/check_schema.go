package simhttp

import (
	"bytes"
	"fmt"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
)

// violation returns the first violation of the rules of structured output: every object has
// additionalProperties: false and, where allRequired is set, requires all its properties. It
// returns "" for a schema that follows the rules.
func violation(schema []byte, allRequired bool) string {
	if !body.Valid(schema) {
		return "it is not JSON"
	}
	return find(bytes.TrimSpace(schema), "", allRequired, 0)
}

func find(b []byte, at string, allRequired bool, depth int) (why string) {
	if depth > 100 {
		return "it is too deeply nested"
	}
	i := 0
	body.Elements(b, func(v []byte) bool {
		why = find(v, fmt.Sprintf("%s/%d", at, i), allRequired, depth+1)
		i++
		return why == ""
	})
	if why == "" {
		why = inObject(b, at, allRequired)
	}
	if why != "" {
		return why
	}
	body.Members(b, func(key, v []byte) bool {
		switch at := at + "/" + string(key); string(key) {
		case "properties", "$defs", "definitions":
			body.Members(v, func(name, s []byte) bool {
				why = find(s, at+"/"+string(name), allRequired, depth+1)
				return why == ""
			})
		case "items", "anyOf", "oneOf", "allOf", "prefixItems":
			why = find(v, at, allRequired, depth+1)
		}
		return why == ""
	})
	return why
}

func inObject(b []byte, at string, allRequired bool) (why string) {
	properties := request.Member(b, "properties")
	if properties == nil && !bytes.Contains(request.Member(b, "type"), []byte(`"object"`)) {
		return ""
	}
	if at == "" {
		at = "/"
	}
	if string(request.Member(b, "additionalProperties")) != "false" {
		return fmt.Sprintf("In context=%s, 'additionalProperties' is required to be supplied and to be false.", at)
	}
	if !allRequired {
		return ""
	}
	required := map[string]bool{}
	body.Elements(request.Member(b, "required"), func(name []byte) bool {
		required[request.String(name)] = true
		return true
	})
	body.Members(properties, func(name, _ []byte) bool {
		if !required[string(name)] {
			why = fmt.Sprintf("In context=%s, 'required' is required to be supplied and to be an array including every key in properties. Missing '%s'.", at, name)
		}
		return why == ""
	})
	return why
}
