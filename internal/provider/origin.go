package provider

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// Origin identifies who answers for p: wire format, addresses, the name of the variable that
// holds the key, and headers. An answer that was kept for one origin is never given to
// another. The key itself is not part of it, so that a new key for the same account finds the
// answers that were paid for with the old one. Of what is in headers nothing can be read back.
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
	return sha256.Sum256(b)
}
