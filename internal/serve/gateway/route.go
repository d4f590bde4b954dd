package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"parley/internal/provider"
	"parley/internal/serve/auth"
	"parley/internal/serve/gateway/format"
	"parley/internal/serve/gateway/ledger"
	"parley/internal/serve/gateway/relay"
	"parley/internal/serve/gateway/session"
	"parley/llm"
)

// route is what a request's path says.
type route struct {
	session string // "": none is named
	what    string // an endpoint, or one of ours: status, close
	api     format.API
	suffix  string // what follows the endpoint
}

// parse reads an escaped path: /v1/chat/completions, and the same of a session,
// /v1/sessions/{id}/chat/completions or /v1/{id}/chat/completions. The /v1 may be missing,
// or be there once more after the session, since SDKs differ in what they add.
func parse(method, path string) (_ *route, ok bool) {
	rt := &route{}
	rest := unversioned(path)
	if api, suffix, ok := endpoint(method, rest); ok {
		return &route{what: "call", api: api, suffix: suffix}, true
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
	rt.session = id
	switch {
	case named && !more && method == http.MethodGet:
		rt.what = "status"
		return rt, true
	case named && rest == "close" && method == http.MethodPost:
		rt.what = "close"
		return rt, true
	}
	rt.what = "call"
	rt.api, rt.suffix, ok = endpoint(method, unversioned("/"+rest))
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
	for _, api := range []format.API{format.Chat, format.Responses, format.Embeddings, format.Messages, format.Count} {
		if path == api.Path() {
			return api, "", true
		}
	}
	return "", "", false
}

// harmless says whether an escaped path stays below where it is put: however often it is
// unescaped on its way, it has no step up, no backslash and no control character.
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

// endpoints lists what is served, for who asked for something else.
func endpoints() string {
	return "POST /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/messages, /v1/messages/count_tokens; GET /v1/models; " +
		"the same below /v1/sessions/{id} or /v1/{id}; GET /v1/sessions/{id}; POST /v1/sessions/{id}/close"
}

// sessionOf is the session of a request: the path's, a header's, or the default one.
func sessionOf(rt *route, h http.Header) (string, error) {
	id := rt.session
	for _, name := range []string{"X-Parley-Session", "X-Session-Id"} {
		if id == "" {
			id = h.Get(name)
		}
	}
	if id == "" {
		return session.Default, nil
	}
	if len(id) > 200 || strings.ContainsFunc(id, func(r rune) bool { return r == 0xfffd || !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return "", fmt.Errorf("a session's name has at most 200 characters, none of them white space or invisible")
	}
	return id, nil
}

// owner is whose sessions a request with these headers may use: a digest of its key, where
// keys tell clients apart. They do where the gateway has keys of its own, and where the
// clients' keys are the provider's.
func (g *Gateway) owner(h http.Header) string {
	keys := auth.All(h)
	if len(keys) == 0 || len(g.keys) == 0 && !g.passes {
		return ""
	}
	if len(g.keys) > 0 {
		keys = keys[:1] // the one that was checked
	}
	sum := sha256.Sum256([]byte("parley gateway session\x00" + strings.Join(keys, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// passesKeys says whether some provider is asked with the clients' own keys.
func (g *Gateway) passesKeys() bool {
	without := func(p provider.Provider) bool { return p.KeyEnv == "" }
	return g.cfg.Replay || slices.ContainsFunc(g.cfg.Upstreams, without) // what is replayed may be of such a gateway
}

// target is who answers a call.
type target struct {
	upstream  *relay.Upstream
	model     string // as provider/model
	fallbacks []string
}

// target finds who answers: an alias, a provider named before a slash, or the first
// upstream of the call's family.
func (g *Gateway) target(api format.API, model string) (*target, *llm.Error) {
	if to, ok := g.cfg.Aliases[model]; ok {
		model = to
	}
	name, rest := llm.SplitModel(model)
	u := g.upstreams[name]
	if u == nil || rest == "" {
		u, rest = g.first(api), model
	}
	t := &target{upstream: u, model: u.Provider().Name + "/" + rest}
	if model == "" && api != format.Models {
		return t, &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusBadRequest, Code: "model_missing", Message: "the request names no model"}
	}
	t.fallbacks = g.cfg.Fallbacks[t.model]
	return t, nil
}

// aliases are the other names of models: ours, or those of a record that is replayed.
func aliases(c Config, found *ledger.State) map[string]string {
	if c.Replay {
		return found.Aliases
	}
	return c.Aliases
}

// first is the first upstream that speaks the format of api, or the first of all.
func (g *Gateway) first(api format.API) *relay.Upstream {
	for _, u := range g.order {
		if u.Anthropic() == api.Anthropic() {
			return u
		}
	}
	return g.order[0]
}

// checkNames wants every alias and fallback to lead somewhere.
func (g *Gateway) checkNames() error {
	check := func(what, model string) error {
		if name, rest := llm.SplitModel(model); g.upstreams[name] == nil || rest == "" {
			return fmt.Errorf("gateway: %s: %q: write it provider/model; upstreams here: %s", what, model, strings.Join(slices.Sorted(maps.Keys(g.upstreams)), ", "))
		}
		return nil
	}
	for name, model := range g.cfg.Aliases {
		if err := check("alias "+name, model); err != nil {
			return err
		}
	}
	for model, others := range g.cfg.Fallbacks {
		for _, m := range append([]string{model}, others...) {
			if err := check("fallback", m); err != nil {
				return err
			}
		}
	}
	return nil
}
