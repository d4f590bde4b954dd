package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"parley/internal/ask/provider"
	"parley/internal/kit/auth"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// sessionOf returns the session of a request: from the path, a header, or the default one.
func sessionOf(rt *gatewayRoute, h http.Header) (string, error) {
	id := rt.Session
	for _, name := range []string{"X-Parley-Session", "X-Session-Id"} {
		if id == "" {
			id = h.Get(name)
		}
	}
	if id == "" {
		return sessionDefault, nil
	}
	if len(id) > 200 || strings.ContainsFunc(id, func(r rune) bool { return r == 0xfffd || !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return "", fmt.Errorf("a session's name has at most 200 characters, none of them white space or invisible")
	}
	return id, nil
}

// owner returns who owns the sessions of a request: a digest of its key if keys distinguish clients. They do
// if the gateway has keys, or if providers get the clients' keys.
func (g *Gateway) owner(h http.Header) string {
	keys := auth.All(h)
	if len(keys) == 0 || len(g.keys) == 0 && !g.passes {
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
	upstream  *relayUpstream
	model     string // as provider/model
	fallbacks []string
}

// target finds the model of a call: an alias, a provider named before a slash, or the first upstream of the
// call's family.
func (g *Gateway) target(api format.API, model string) (*target, *llm.Error) {
	model = cmp.Or(model, api.Served())
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

// aliases returns the other names of models: those of the config, or of the record that is replayed.
func aliases(c Config, found *ledgerState) map[string]string {
	if c.Replay {
		return found.Aliases
	}
	return c.Aliases
}

// first returns the first upstream that speaks the format of api, or the first of all.
func (g *Gateway) first(api format.API) *relayUpstream {
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
