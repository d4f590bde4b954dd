package relay

import (
	"crypto/sha256"
	"hash"
	"net/http"
	"slices"
	"strings"

	"parley/internal/serve/auth"
)

// own are the headers that belong to the provider's account: a client cannot replace them.
func own(configured map[string]string) map[string]bool {
	out := map[string]bool{}
	for name := range configured {
		out[http.CanonicalHeaderKey(name)] = true
	}
	return out
}

// forwards calls each with every header of the client that is sent along: all but those
// between it and us, those it names as such in Connection, and the account's own. A key goes
// along in its vendor's own header, where keys go along at all: see header for the others.
func (u *Upstream) forwards(f *Flight, each func(name string, values []string)) {
	h := f.Header
	var listed []string
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			listed = append(listed, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	for name, values := range h {
		if auth.IsKey(name) && len(f.Keys) == 0 {
			continue
		}
		if !hop(name) && !strings.HasPrefix(name, "X-Parley-") && !u.own[name] && !slices.Contains(listed, name) {
			each(name, values)
		}
	}
}

// header is what is sent along. To another vendor than it was meant for goes nothing but the
// session.
func (u *Upstream) header(f *Flight, translated bool) http.Header {
	out := make(http.Header, len(f.Header)+1)
	if !translated {
		u.forwards(f, func(name string, values []string) { out[name] = values })
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

// usual is the key that goes along in the header of the call's format: that of a header which
// belongs to one vendor stays there.
func (f *Flight) usual() string {
	if len(f.Keys) == 0 {
		return ""
	}
	return auth.Usual(f.Header)
}

// Account hashes whose answer a call of f gets: the provider's origin, the client's own key
// where that is sent along, and the headers by which a client could say more. An answer may be
// given to another call only where this is equal. The key itself is only in the hash.
func (u *Upstream) Account(f *Flight) (sum [sha256.Size]byte) {
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

// write hashes s so that no two sequences of texts look alike.
func write(h hash.Hash, s string) {
	part := sha256.Sum256([]byte(s))
	h.Write(part[:])
}

// hop says whether a header is about one connection, about who a client is to us, or about a
// body that is no longer as the client sent it.
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

// noise says whether a header that is sent along tells nothing that an answer depends on.
func noise(name string) bool {
	switch name {
	case "Accept", "Accept-Language", "Accept-Charset", "Baggage", "Cache-Control", "Dnt", "Idempotency-Key", "Pragma", "Priority",
		"Sentry-Trace", "Traceparent", "Tracestate", "User-Agent", "X-App", "X-Client-Request-Id", "X-Request-Id", "Request-Id":
		return true
	}
	return strings.HasPrefix(name, "X-Stainless-") || strings.HasPrefix(name, "X-B3-") || strings.HasPrefix(name, "X-Datadog-")
}

// backward is what of a provider's header a client is sent. What a browser would act on is
// left out: the address is ours, and not the provider's.
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
