package simhttp

import (
	"strings"
	"testing"
)

// TestRefuses checks what Google and AWS refuse. Tests of the server check the rest.
func TestRefuses(t *testing.T) {
	t.Parallel()
	const pdf = `"bytes":"JVBERi0xLjQK"`
	for content, want := range map[string]string{
		`[{"text":"x"},{"document":{"name":"a b-(1)[2]","format":"pdf","source":{` + pdf + `}}}]`: "",
		`[{"document":{"name":"a","format":"pdf","source":{` + pdf + `}}}]`:                       "a text block is required",
		`[{"text":"x"},{"document":{"name":"a.pdf","format":"pdf","source":{` + pdf + `}}}]`:      "can only contain alphanumeric characters",
		`[{"text":"x"},{"document":{"name":"a  b","format":"pdf","source":{` + pdf + `}}}]`:       "more than one consecutive whitespace",
		`[{"text":"x"},{"document":{"name":"a","format":"pdf","source":{"bytes":"AAAA"}}}]`:       "not valid",
		`[{"text":"x"}]`: "",
		`[{"text":"x"},{"document":{"name":"a","format":"pdf","source":{` + pdf + `}}},{"document":{"name":"A","format":"pdf","source":{` + pdf + `}}}]`: "duplicate document names",
	} {
		if got := mediaBedrock("messages.0.content", []byte(content), map[string]bool{}); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", content, got, want)
		}
	}
	for data, want := range map[string]string{
		``: "", `{"mimeType":"image/png","data":"AAAA"}`: "",
		`{"mimeType":"application/pdf","data":"JVBERi0xLjQK"}`: "",
		`{"mimeType":"application/pdf","data":"AAAA"}`:         "The document has no pages.",
		`{"mimeType":"audio/wav","data":"AAAA"}`:               "invalid argument",
		`{"mimeType":"audio/mpeg","data":"SUQz"}`:              "",
		`{"mimeType":"application/zip","data":"AAAA"}`:         "Unsupported MIME type: application/zip",
	} {
		var v []byte
		if data != "" {
			v = []byte(data)
		}
		if got := mediaGemini(v); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}
