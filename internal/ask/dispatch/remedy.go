package dispatch

import (
	"net"
	"net/url"
	"strings"

	"parley/internal/ask/provider"
)

// Remedy says what to do about a provider that cannot be reached at a host. If the host is empty, it is that of the preset of this name.
func Remedy(name, host string) string {
	preset, _ := provider.Lookup(name)
	own := hostOf(preset.BaseURL)
	if host == "" {
		host = own
	}
	const network, server = "check the network, or the proxy", "make sure that the server is running, and that base_url of the provider is right"
	switch ip := net.ParseIP(host); {
	case host == "", strings.EqualFold(host, "localhost"), ip.IsLoopback():
		return server
	case host == own:
		return network
	default:
		return network + "; " + server
	}
}

// hostOf returns the host of an address. Empty: it has none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
