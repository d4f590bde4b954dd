package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"parley/internal/ask/provider"
	"parley/internal/kit/auth"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// What a request wants.
const (
	routeCall   = "call"   // an endpoint of a vendor's API
	routeStatus = "status" // of a session
	routeClose  = "close"  // a session
	routeOpen   = "open"   // a session
)

// route is what the path of a request asks for. No path leads outside its endpoint.
type route struct {
	Session string // may be empty
	About   about  // what the path says of the session
	What    string // routeCall, routeStatus, routeClose or routeOpen
	API     format.API
	Method  string // of a batch API
	At      format.Address
	Suffix  string          // follows the endpoint
	program *programSession // whose program asks; nil: none
}

// parseRoute reads an escaped path: /v1/chat/completions, or with a session /v1/sessions/{id}/chat/completions or
// /v1/{id}/chat/completions. The /v1 may be missing, or come again after the session, since SDKs differ. Gemini's may be /v1beta.
func parseRoute(method, path string) (_ *route, ok bool) {
	rt := &route{What: routeCall}
	if rt.parseEndpoint(method, path) {
		return rt, true
	}
	rest := unversioned(path)
	in, named := strings.CutPrefix(rest, "/sessions/")
	if !named {
		in = strings.TrimPrefix(rest, "/")
	}
	id, rest, more := strings.Cut(in, "/")
	id, a, err := splitAbout(id)
	if id == "" || err != nil || id == betaVersion && !named {
		return rt, false
	}
	rt.Session, rt.About = id, a
	switch {
	case named && !more && method == http.MethodPost:
		rt.What = routeOpen
		return rt, true
	case named && !more && method == http.MethodGet:
		rt.What = routeStatus
		return rt, true
	case named && rest == "close" && method == http.MethodPost:
		rt.What = routeClose
		return rt, true
	}
	return rt, more && rt.parseEndpoint(method, "/"+rest)
}

// betaVersion is the version of Gemini's API that its SDKs use.
const betaVersion = "v1beta"

func unversioned(path string) string {
	if rest, ok := strings.CutPrefix(path, "/v1"); ok && strings.HasPrefix(rest, "/") {
		return rest
	}
	return path
}

// parseEndpoint reads the endpoint of a path, with its version if it has one.
func (rt *route) parseEndpoint(method, path string) (ok bool) {
	beta := false
	if rest, is := strings.CutPrefix(path, "/"+betaVersion); is {
		if method == http.MethodPost {
			return rt.parseGemini(rest)
		}
		path, beta = rest, true
	} else {
		path = unversioned(path)
	}
	if !beta && rt.parseBatch(method, path) {
		return true
	}
	switch method {
	case http.MethodGet:
		if rt.API = format.Models; beta {
			rt.API = format.GeminiModels
		}
		rt.Suffix, ok = strings.CutPrefix(path, format.Models.Path())
		return ok && (rt.Suffix == "" || rt.Suffix[0] == '/' && staysBelow(rt.Suffix))
	case http.MethodPost:
		return rt.parsePost(path)
	}
	return false
}

func (rt *route) parsePost(path string) bool {
	for _, api := range []format.API{format.Chat, format.Responses, format.Embeddings, format.Messages, format.Count, format.Tokens, format.Generate} {
		if path == api.Path() {
			rt.API = api
			return true
		}
	}
	return rt.parseGemini(path)
}

// parseBatch reads an endpoint of the vendors' batch APIs.
func (rt *route) parseBatch(method, path string) bool {
	for _, api := range []format.API{format.Files, format.Batches, format.MessageBatches} {
		rest, ok := strings.CutPrefix(path, api.Path())
		id, more, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		if !ok || id != "" && (rest[0] != '/' || !isBatchID(id)) || id == "" && rest != "" {
			continue
		}
		switch method + " " + more {
		case "POST ":
			ok = id == ""
		case "GET ":
		case "DELETE ":
			ok = id != "" && api != format.Batches
		case "GET content":
			ok = api == format.Files
		case "GET results":
			ok = api == format.MessageBatches
		case "POST cancel":
			ok = api != format.Files
		default:
			ok = false
		}
		if ok && (id != "" || more == "" && !strings.HasSuffix(rest, "/")) {
			rt.API, rt.Method, rt.Suffix = api, method, rest
			return true
		}
	}
	return false
}

// isBatchID reports whether s can be the id of a file or a batch.
func isBatchID(s string) bool {
	return len(s) <= 200 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

func (rt *route) parseGemini(path string) (ok bool) {
	rt.API, rt.At, ok = format.ParseGemini(path)
	return ok && staysBelow(path)
}

// staysBelow reports whether an escaped path stays below its parent: however often it is unescaped, it has no
// step up, no backslash and no control character.
func staysBelow(path string) bool {
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
	return "POST /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/messages, /v1/messages/count_tokens, /v1beta/models/{model}:generateContent, :streamGenerateContent and :countTokens, /inference/v1/generate, /generate; GET /v1/models; POST, GET and DELETE /v1/files, /v1/batches and /v1/messages/batches; " +
		"the same below /v1/sessions/{id} or /v1/{id}; GET and POST /v1/sessions/{id}; POST /v1/sessions/{id}/close"
}

// programHeaders are the headers in which programs name their sessions, as shipped: opencode, Claude Code and Codex.
func programHeaders() []string {
	return []string{"X-Session-Id", "X-Claude-Code-Session-Id", "Session-Id"}
}

// requestSession returns the session of a request: from the path, a header, or the default one. drawn reports whether the
// name is a program's own, which is another one each time the program runs.
func requestSession(rt *route, h http.Header) (id string, drawn bool, err error) {
	id = cmp.Or(rt.Session, h.Get("X-Parley-Session"))
	for _, name := range programHeaders() {
		if id == "" {
			id = h.Get(name)
			drawn = id != ""
		}
	}
	if id == "" {
		return defaultSession, false, nil
	}
	if len(id) > 200 || strings.ContainsFunc(id, func(r rune) bool { return r == 0xfffd || !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return "", false, fmt.Errorf("a session's name has at most 200 characters, none of them white space or invisible")
	}
	return id, drawn, nil
}

// owner returns who owns the sessions of a request: a digest of its key if keys distinguish clients. They do
// if the gateway has keys, or if providers get the clients' keys.
func (g *Gateway) owner(h http.Header) string {
	keys := auth.SentKeys(h)
	if len(keys) == 0 || len(g.keys) == 0 && !g.clientKeys {
		return ""
	}
	if len(g.keys) > 0 {
		keys = keys[:1] // the key that was checked
	}
	sum := sha256.Sum256([]byte("parley gateway session\x00" + strings.Join(keys, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// passesKeys reports whether some provider gets the clients' own keys.
func (g *Gateway) passesKeys() bool {
	without := func(p provider.Provider) bool { return !p.HasKey() && !p.Signs() }
	return g.cfg.Replay || slices.ContainsFunc(g.cfg.Upstreams, without) // the record may come from such a gateway
}

// target is the model that answers a call.
type target struct {
	upstream  *relay
	model     string // as provider/model
	fallbacks []string
	maxOutput int // tokens of an answer; 0: no limit
}

// target finds the model of a call: an alias, a provider named before a slash, or the first upstream of the
// call's family.
func (g *Gateway) target(api format.API, model string) (*target, *llm.Error) {
	model = cmp.Or(model, api.Served())
	named := g.cfg.AliasOutput[model]
	if to, ok := g.cfg.Aliases[model]; ok {
		model = to
	}
	name, rest := llm.SplitModel(model)
	u := g.upstreams[name]
	if u == nil || rest == "" {
		u, rest = g.firstUpstream(api), model
	}
	t := &target{upstream: u, model: u.provider.Name + "/" + rest, maxOutput: cmp.Or(min(named, g.cfg.MaxOutput), named, g.cfg.MaxOutput)}
	if model == "" && !api.Lists() {
		return t, &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusBadRequest, Code: "model_missing", Message: "the request names no model"}
	}
	t.fallbacks = g.cfg.Fallbacks[t.model]
	return t, nil
}

// firstUpstream returns the first upstream that speaks the format of api, or the first of all.
func (g *Gateway) firstUpstream(api format.API) *relay {
	for _, u := range g.order {
		if u.Speaks(api) {
			return u
		}
	}
	return g.order[0]
}

// checkNames checks that every alias and fallback names an upstream.
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
