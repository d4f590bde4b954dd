package auth

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// host returns why the Host of a request is refused, or "". A page that rebinds its own name to this machine
// sends that name, which is not on the list.
func (g *Guard) host(r *http.Request) string {
	switch {
	case r.URL.Host != "" || r.URL.Scheme != "" || r.Method == http.MethodConnect:
		return "the request is for a proxy, which this server is not: send the path alone, and the server's name in Host"
	case r.Host == "":
		return "the request has no Host header"
	case g.known(r):
		return ""
	}
	return "Host " + short(r.Host) + " is not a name of this server: use its address, or allow the name with --allow-host"
}

// known reports whether the Host of a request is a name of the server.
func (g *Guard) known(r *http.Request) bool {
	name, port, ok := splitHost(r.Host)
	if !ok {
		return false
	}
	for _, allowed := range g.Access.Hosts {
		if strings.EqualFold(allowed, r.Host) || strings.EqualFold(allowed, name) {
			return true
		}
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !samePort(port, local.Port, r.TLS != nil) {
		return false
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	// Addresses are compared exactly: one in octal, as one number or with a zone is not accepted, and neither
	// is the same address in another family.
	addr, err := netip.ParseAddr(name)
	if err != nil || addr.Zone() != "" {
		return false
	}
	if addr == netip.IPv6Loopback() || addr == netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
		return true
	}
	here, ok := netip.AddrFromSlice(local.IP)
	return ok && addr == here.Unmap()
}

// samePort reports whether a port in Host is the port of the server. No port means that of the scheme.
func samePort(port string, local int, tls bool) bool {
	if port == "" {
		return local == 443 && tls || local == 80 && !tls
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && int(n) == local && port[0] != '+'
}

// splitHost splits NAME, NAME:PORT, [ADDRESS] and [ADDRESS]:PORT.
func splitHost(s string) (name, port string, ok bool) {
	if rest, in := strings.CutPrefix(s, "["); in {
		name, port, ok = strings.Cut(rest, "]")
		if !ok || !strings.Contains(name, ":") {
			return "", "", false
		}
		if port == "" {
			return name, "", true
		}
		port, ok = strings.CutPrefix(port, ":")
		return name, port, ok && port != ""
	}
	name, port, colon := strings.Cut(s, ":")
	if name == "" || colon && port == "" || strings.Contains(port, ":") {
		return "", "", false
	}
	return name, port, true
}

// Check checks the names and origins.
func (a Access) Check() error {
	for _, h := range a.Hosts {
		name, port, ok := splitHost(h)
		if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
			ok = false
		}
		if !ok || strings.ContainsAny(name, "/*?#@\\% \t\r\n,") {
			return fmt.Errorf("--allow-host %q: want NAME or NAME:PORT, without wildcards", short(h))
		}
	}
	for _, o := range a.Origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsAny(o, "*\\ ") || u.Scheme+"://"+u.Host != o {
			return fmt.Errorf("--allow-origin %q: want SCHEME://NAME or SCHEME://NAME:PORT, as a browser sends it", short(o))
		}
	}
	return nil
}
