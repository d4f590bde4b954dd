// Part route reads the paths of requests to a gateway: which endpoint of which session they mean.
//
// It promises that no path leads outside its endpoint. It is not for choosing who answers.

package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"parley/internal/serve/gateway/format"
)

// What a request wants.
const (
	routeCall   = "call"   // an endpoint of a vendor's API
	routeStatus = "status" // of a session
	Close       = "close"  // a session
)

// gatewayRoute is the meaning of a path.
type gatewayRoute struct {
	Session string // may be empty
	What    string // Call, Status or Close
	API     format.API
	Suffix  string // follows the endpoint
}

// parse reads an escaped path: /v1/chat/completions, or with a session /v1/sessions/{id}/chat/completions or
// /v1/{id}/chat/completions. The /v1 may be missing, or come again after the session, since SDKs differ.
func parse(method, path string) (_ *gatewayRoute, ok bool) {
	rt := &gatewayRoute{}
	rest := unversioned(path)
	if api, suffix, ok := endpoint(method, rest); ok {
		return &gatewayRoute{What: routeCall, API: api, Suffix: suffix}, true
	}
	in, named := strings.CutPrefix(rest, "/sessions/")
	if !named {
		in = strings.TrimPrefix(rest, "/")
	}
	id, rest, more := strings.Cut(in, "/")
	id, err := url.PathUnescape(id)
	if id == "" || err != nil {
		return rt, false
	}
	rt.Session = id
	switch {
	case named && !more && method == http.MethodGet:
		rt.What = routeStatus
		return rt, true
	case named && rest == "close" && method == http.MethodPost:
		rt.What = Close
		return rt, true
	}
	rt.What = routeCall
	rt.API, rt.Suffix, ok = endpoint(method, unversioned("/"+rest))
	return rt, ok && more
}

func unversioned(path string) string {
	if rest, ok := strings.CutPrefix(path, "/v1"); ok && strings.HasPrefix(rest, "/") {
		return rest
	}
	return path
}

func endpoint(method, path string) (api format.API, suffix string, ok bool) {
	if method == http.MethodGet {
		suffix, ok = strings.CutPrefix(path, format.Models.Path())
		return format.Models, suffix, ok && (suffix == "" || suffix[0] == '/' && harmless(suffix))
	}
	if method != http.MethodPost {
		return "", "", false
	}
	for _, api := range []format.API{format.Chat, format.Responses, format.Embeddings, format.Messages, format.Count, format.Tokens, format.Generate} {
		if path == api.Path() {
			return api, "", true
		}
	}
	return "", "", false
}

// harmless reports whether an escaped path stays below its parent: however often it is unescaped, it has no
// step up, no backslash and no control character.
func harmless(path string) bool {
	for range 4 {
		if strings.Contains(path, "..") || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == 0xfffd }) {
			return false
		}
		plain, err := url.PathUnescape(path)
		if err != nil || plain == path {
			return true
		}
		path = plain
	}
	return false
}

// endpoints lists what is served, for errors.
func endpoints() string {
	return "POST /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/messages, /v1/messages/count_tokens, /inference/v1/generate, /generate; GET /v1/models; " +
		"the same below /v1/sessions/{id} or /v1/{id}; GET /v1/sessions/{id}; POST /v1/sessions/{id}/close"
}
