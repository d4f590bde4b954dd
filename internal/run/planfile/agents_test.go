package planfile

import (
	"strings"
	"testing"
)

func TestIsAgentName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a": true, "_": true, "日本5²": true, "a.b@c+d/e-f": true, strings.Repeat("é", 64): true,
		"": false, "-a": false, ".": false, "a b": false, "a\n": false, "a\xff": false, "\u0301": false, strings.Repeat("é", 65): false,
	} {
		if isAgentName(name) != want {
			t.Errorf("%q: %v, want %v", name, !want, want)
		}
	}
	if isTagName("a.b") || !isTagName("a-b") {
		t.Error("the name of a tag has - and no dots")
	}
}
