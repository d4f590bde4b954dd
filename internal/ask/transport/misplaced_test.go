package transport

import (
	"net/url"
	"testing"

	"parley/llm"
)

// TestMisplaced checks that only errors of unknown paths name the URL.
func TestMisplaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at     string
		status int
		said   string
		want   string
	}{
		{"http://h:8080/v1/v1/chat/completions", 404, "File Not Found", "404 from http://h:8080/v1/v1/chat/completions: File Not Found; base_url should end in one /v1"},
		{"http://h:8080/chat/completions", 405, "no", "405 from http://h:8080/chat/completions: no; does base_url lack the /v1 at its end?"},
		{"http://h/v1/chat/completions/chat/completions", 404, "no", "404 from http://h/v1/chat/completions/chat/completions: no; base_url is everything before the endpoint, and should end in /v1"},
		{"http://me:secret@h/v1/files/x?key=secret", 404, "no", "404 from http://me:xxxxx@h/v1/files/x: no"},
		{"http://h/v1/chat/completions", 404, "The model `x` does not exist", "The model `x` does not exist"},
		{"http://h/chat/completions", 400, "no", "no"},
		{"http://h/api/paas/v4/chat/completions", 404, "no", "404 from http://h/api/paas/v4/chat/completions: no"},
	} {
		u, err := url.Parse(c.at)
		if err != nil {
			t.Fatal(err)
		}
		e := &llm.Error{Status: c.status, Message: c.said}
		(&Answer{url: u}).Misplaced(e)
		if e.Message != c.want {
			t.Errorf("%s: %s\nwant %s", c.at, e.Message, c.want)
		}
	}
}
