package probe

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"parley/internal/ask/provider"
)

// entry writes the provider of a plan.
func (p *prober) entry() {
	e := provider.Provider{Name: Name, Dialect: p.dialect, BaseURL: p.report.BaseURL, KeyEnv: p.cfg.KeyEnv, Metrics: p.metrics}
	if c := p.caps; !empty(c) {
		c.Match = Name + "/*"
		e.Capabilities = []provider.Capability{c}
	}
	if p.batch {
		e.Batch = &provider.Batch{}
	}
	p.report.Provider = &e
	p.report.Entry = lines(e, p.report.Model)
}

// empty reports whether there is nothing to write about a server's models.
func empty(c provider.Capability) bool {
	b, err := json.Marshal(c)
	return err == nil && string(b) == `{"match":""}`
}

// lines returns a provider as YAML, with an agent that uses it.
func lines(e provider.Provider, model string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "providers:\n  %s:\n    dialect: %s\n    base_url: %s\n", e.Name, e.Dialect, strconv.Quote(e.BaseURL))
	if e.KeyEnv != "" {
		fmt.Fprintf(&b, "    key_env: %s\n", e.KeyEnv)
	}
	if e.Metrics != "" {
		fmt.Fprintf(&b, "    metrics: %s\n", e.Metrics)
	}
	if e.Batch != nil {
		fmt.Fprint(&b, "    batch: {}\n")
	}
	for _, c := range e.Capabilities {
		if raw, err := json.Marshal(c); err == nil {
			fmt.Fprintf(&b, "    capabilities: [%s]\n", spaced(raw))
		}
	}
	name, err := json.Marshal(e.Name + "/" + model)
	if err != nil {
		return ""
	}
	fmt.Fprintf(&b, "agents:\n  player: {model: %s}\n", name)
	return b.String()
}

// spaced writes a flat JSON object in the usual style of YAML: keys without quotes, spaces
// after commas and colons.
func spaced(object []byte) string {
	var b strings.Builder
	text, key := false, true
	for _, c := range object {
		switch {
		case c == '"':
			text = !text
			if !key {
				b.WriteByte(c)
			}
		case text:
			b.WriteByte(c)
		case c == ',':
			b.WriteString(", ")
			key = true
		case c == ':':
			b.WriteString(": ")
			key = false
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
