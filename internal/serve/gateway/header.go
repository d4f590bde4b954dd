package gateway

import (
	"crypto/sha256"
	"hash"
	"net/http"
	"slices"
	"strings"

	"parley/internal/kit/auth"
)

// own returns the headers of the provider's account, which a client cannot replace.
func own(configured map[string]string) map[string]bool {
	out := map[string]bool{}
	for name := range configured {
		out[http.CanonicalHeaderKey(name)] = true
	}
	return out
}

// forwards calls each with every header of the client that is sent along: all except those of the connection,
// those that Connection names, and the account's own, which are those that say who pays if the key is the account's.
// Keys are sent along only in their vendor's own header: see header for the others.
func (u *relayUpstream) forwards(f *relayFlight, each func(name string, values []string)) {
	h := f.Header
	var listed []string
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			listed = append(listed, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	for name, values := range h {
		if auth.IsKey(name) && len(f.Keys) == 0 || u.ownsKey && pays(name) {
			continue
		}
		if !hop(name) && !strings.HasPrefix(name, "X-Parley-") && !u.own[name] && !slices.Contains(listed, name) {
			each(name, values)
		}
	}
}

// pays reports whether a header says who pays for a call, of those that its key may use, or at which rate.
func pays(name string) bool {
	switch name {
	case "Openai-Organization", "Openai-Project", "X-Hf-Bill-To", "X-Dashscope-Workspace", "X-Ms-Spillover-Deployment":
		return true
	}
	return strings.HasPrefix(name, "X-Goog-") || strings.HasPrefix(name, "X-Vertex-Ai-") || strings.HasPrefix(name, "X-Amzn-Bedrock-")
}

// header returns the headers to send. Another vendor gets only the session.
func (u *relayUpstream) header(f *relayFlight, translated bool) http.Header {
	out := make(http.Header, len(f.Header)+1)
	if !translated {
		u.forwards(f, func(name string, values []string) { out[name] = values })
		if u.vertex {
			delete(out, "Anthropic-Version") // it is in the body
		}
		if key := f.usual(); key != "" {
			if f.Call.API.Anthropic() {
				out["X-Api-Key"] = []string{key}
			} else {
				out["Authorization"] = []string{"Bearer " + key}
			}
		}
	}
	if f.Session != "" {
		out["X-Session-Id"] = []string{f.Session}
	}
	return out
}

// usual returns the key to send in the header of the call's format. A key in another vendor's header stays
// there.
func (f *relayFlight) usual() string {
	if len(f.Keys) == 0 {
		return ""
	}
	return auth.Usual(f.Header)
}

// Account hashes what decides whose answer a call gets: the provider's origin, the client's key if it is sent
// along, and the client's headers that matter. Only calls with equal hashes may share an answer.
func (u *relayUpstream) Account(f *relayFlight) (sum [sha256.Size]byte) {
	h := sha256.New()
	origin := u.p.Origin()
	h.Write(origin[:])
	write(h, f.usual())
	var lines []string
	u.forwards(f, func(name string, values []string) {
		if !noise(name) {
			lines = append(lines, name+": "+strings.Join(values, "\x00"))
		}
	})
	slices.Sort(lines)
	for _, l := range lines {
		write(h, l)
	}
	h.Sum(sum[:0])
	return sum
}

// write hashes s so that different sequences of texts have different hashes.
func write(h hash.Hash, s string) {
	part := sha256.Sum256([]byte(s))
	h.Write(part[:])
}

// hop reports whether a header is about one connection, about the client, or about the body as the client sent
// it.
func hop(name string) bool {
	switch name {
	case "Accept-Encoding", "Authorization", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Cookie", "Expect",
		"Forwarded", "Host", "Keep-Alive", "Max-Forwards", "Origin", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Referer",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Via", "X-Api-Key", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
		"X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Original-Url", "X-Real-Ip", "X-Rewrite-Url", "X-Session-Id":
		return true
	}
	return strings.HasPrefix(name, "Sec-")
}

// noise reports whether a header that is sent along does not change the answer.
func noise(name string) bool {
	switch name {
	case "Accept", "Accept-Language", "Accept-Charset", "Baggage", "Cache-Control", "Dnt", "Idempotency-Key", "Pragma", "Priority",
		"Sentry-Trace", "Traceparent", "Tracestate", "User-Agent", "X-App", "X-Client-Request-Id", "X-Request-Id", "Request-Id":
		return true
	}
	return strings.HasPrefix(name, "X-Stainless-") || strings.HasPrefix(name, "X-B3-") || strings.HasPrefix(name, "X-Datadog-")
}

// backward returns the headers of a provider that a client gets. It leaves out those on which a browser would
// act, since the address is ours.
func backward(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for k, v := range h {
		switch k {
		case "Alt-Svc", "Clear-Site-Data", "Connection", "Content-Encoding", "Content-Length", "Date", "Keep-Alive", "Location", "Proxy-Authenticate",
			"Proxy-Connection", "Refresh", "Server", "Service-Worker-Allowed", "Set-Cookie", "Set-Cookie2", "Strict-Transport-Security", "Te", "Trailer",
			"Transfer-Encoding", "Upgrade", "Via":
			continue
		}
		if !strings.HasPrefix(k, "Access-Control-") && !strings.HasPrefix(k, "X-Parley-") {
			out[k] = v
		}
	}
	return out
}
