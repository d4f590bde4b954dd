package provider

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// Origin identifies who answers for p: wire format, addresses, where the key comes from, and headers. A cached
// answer of one origin is never given to another. The key itself is not part of it, so a new key for the same account
// finds the answers that the old one paid for. Headers cannot be read back from it.
func (p Provider) Origin() [32]byte {
	var b []byte
	add := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	add(p.Dialect)
	add(p.KeyEnv)
	urls := []string{}
	for _, one := range p.Servers() {
		urls = append(urls, strings.TrimRight(one.BaseURL, "/"))
	}
	slices.Sort(urls)
	urls = slices.Compact(urls)
	b = binary.AppendUvarint(b, uint64(len(urls)))
	for _, u := range urls {
		add(u)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		add(strings.ToLower(name))
		add(p.Headers[name])
	}
	if p.APIVersion != "" {
		add("api-version")
		add(p.APIVersion)
	}
	for _, word := range p.KeyCommand {
		add(word)
	}
	if p.Credentials != "" {
		add("credentials")
		add(string(p.Credentials))
	}
	return sha256.Sum256(b)
}
