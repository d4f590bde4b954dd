package format

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/gemini"
	"parley/internal/ask/wire/request"
)

// ModelsFor returns the form in which a client wants to list models, where the path does not say it.
func ModelsFor(h http.Header) API {
	switch {
	case h.Get("Anthropic-Version") != "":
		return AnthropicModels
	case h.Get("X-Goog-Api-Key") != "" || h.Get("X-Goog-Api-Client") != "":
		return GeminiModels
	}
	return Models
}

// Lists reports whether the endpoint lists models.
func (a API) Lists() bool { return a == Models || a == AnthropicModels || a == GeminiModels }

// AppendModels appends a list of models, or one model, that a server of any vendor wrote in its own form, in the form of the endpoint. It keeps the
// names of the models. It returns false for what is no such list.
func (a API) AppendModels(b, list []byte) ([]byte, bool) {
	names, many, ok := modelNames(list)
	switch {
	case !ok:
		return b, false
	case !many:
		return a.appendModel(b, names[0]), true
	case a == GeminiModels:
		b = append(b, `{"models":[`...)
	case a == AnthropicModels:
		b = append(b, `{"data":[`...)
	default:
		b = append(b, `{"object":"list","data":[`...)
	}
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = a.appendModel(b, name)
	}
	b = append(b, ']')
	if a == AnthropicModels {
		var first, last string
		if len(names) > 0 {
			first, last = names[0], names[len(names)-1]
		}
		b = body.Nullable(body.Nullable(body.Bool(b, "has_more", false), "first_id", first), "last_id", last)
	}
	return append(b, '}'), true
}

// modelNames returns the names in a list, or that of one model.
func modelNames(b []byte) (names []string, many, ok bool) {
	nameOf := func(m []byte) string {
		if id := request.Str(m, "id"); id != "" {
			return id
		}
		return strings.TrimPrefix(request.Str(m, "name"), "models/")
	}
	add := func(m []byte) bool {
		names = append(names, nameOf(m))
		return names[len(names)-1] != ""
	}
	for _, key := range []string{"data", "models"} {
		if v := request.Member(b, key); v != nil {
			return names, true, body.Elements(v, add) && !slices.Contains(names, "")
		}
	}
	return names, false, add(b)
}

// appendModel appends one model. The servers' other words about it are left out: when it was made is not known.
func (a API) appendModel(b []byte, name string) []byte {
	b = append(b, '{')
	switch a {
	case GeminiModels:
		b = body.Str(body.Str(b, "name", "models/"+name), "displayName", name)
		b = body.Strings(b, "supportedGenerationMethods", []string{gemini.Generate, gemini.Stream, gemini.Count})
	case AnthropicModels:
		b = body.Str(body.Str(body.Str(b, "type", "model"), "id", name), "display_name", name)
		b = body.Str(b, "created_at", time.Unix(0, 0).UTC().Format(time.RFC3339))
	default:
		b = body.Int(body.Str(body.Str(b, "id", name), "object", "model"), "created", 0)
		b = body.Str(b, "owned_by", "unknown")
	}
	return append(b, '}')
}

// AppendCount appends a number of tokens as the endpoint does.
func (a API) AppendCount(b []byte, n int) []byte {
	name := "input_tokens"
	if a == GeminiCount {
		name = "totalTokens"
	}
	return append(body.Int(append(b, '{'), name, int64(n)), '}')
}
