package door

import (
	"net/http"
	"testing"
)

func TestAsk(t *testing.T) {
	t.Parallel()
	locked := New([]string{"one", "two"})
	for _, c := range []struct {
		name   string
		keys   Keys
		header string
		value  string
		want   Verdict
	}{
		{"no keys", nil, "", "", Welcome},
		{"no keys, one sent", nil, "Authorization", "Bearer one", Welcome},
		{"no keys, a web page", nil, "Origin", "https://example.com", WebPage},
		{"none sent", locked, "", "", Strangers},
		{"bearer", locked, "Authorization", "Bearer two", Welcome},
		{"not as a bearer", locked, "Authorization", "two", Strangers},
		{"own header", locked, "X-Api-Key", "one", Welcome},
		{"wrong", locked, "X-Api-Key", "on", Strangers},
		{"longer", locked, "Authorization", "Bearer one ", Strangers},
		{"both keys", locked, "Authorization", "Bearer onetwo", Strangers},
		{"a web page", locked, "Origin", "https://example.com", Strangers},
	} {
		h := http.Header{}
		if c.header != "" {
			h.Set(c.header, c.value)
		}
		if got := c.keys.Ask(h); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
