package provider

import "testing"

func TestOrigin(t *testing.T) {
	t.Parallel()
	p := Provider{Name: "lab", Dialect: "openai", BaseURL: "https://a.example/v1", KeyEnv: "LAB_KEY"}
	with := func(change func(*Provider)) Provider {
		q := p
		change(&q)
		return q
	}
	for name, q := range map[string]Provider{
		"another name":      with(func(q *Provider) { q.Name = "other" }),
		"a slash":           with(func(q *Provider) { q.BaseURL += "/" }),
		"one of one":        with(func(q *Provider) { q.BaseURL, q.BaseURLs = "", []string{"https://a.example/v1"} }),
		"limits":            with(func(q *Provider) { q.Limits.RPM = 5 }),
		"the same, written": with(func(q *Provider) { q.Headers = map[string]string{} }),
	} {
		if q.Origin() != p.Origin() {
			t.Errorf("%s: the origin is another", name)
		}
	}
	seen := map[[32]byte]string{p.Origin(): "itself"}
	for name, q := range map[string]Provider{
		"address":       with(func(q *Provider) { q.BaseURL = "https://b.example/v1" }),
		"port":          with(func(q *Provider) { q.BaseURL = "https://a.example:8443/v1" }),
		"two servers":   with(func(q *Provider) { q.BaseURLs = []string{"https://a.example/v1", "https://b.example/v1"} }),
		"dialect":       with(func(q *Provider) { q.Dialect = "responses" }),
		"key variable":  with(func(q *Provider) { q.KeyEnv = "OTHER_KEY" }),
		"organization":  with(func(q *Provider) { q.Headers = map[string]string{"OpenAI-Organization": "org-1"} }),
		"another one":   with(func(q *Provider) { q.Headers = map[string]string{"OpenAI-Organization": "org-2"} }),
		"another field": with(func(q *Provider) { q.Dialect, q.KeyEnv = "openaiLAB", "_KEY" }),
	} {
		if same := seen[q.Origin()]; same != "" {
			t.Errorf("%s: the same origin as %s", name, same)
		}
		seen[q.Origin()] = name
	}
}
