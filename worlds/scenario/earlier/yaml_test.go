package earlier

import (
	"testing"

	"github.com/goccy/go-yaml"
)

// TestYAML checks that every text is read as itself.
func TestYAML(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "yes", "12", "1e3", "2020-01-01", "a: b", "a # b", "- x", "*x", "~", "<<", "one\n\n  two\n", " one\ntwo", "one\r\ntwo", "a\tb\x01", "a\u0085b\nc", "it's \"x\""} {
		c := &converter{}
		made := c.yaml(fields{{"deep", []fields{{{"text", text}}}}})
		var got struct{ Deep []struct{ Text any } }
		if err := yaml.Unmarshal([]byte(made), &got); err != nil || len(c.errs) > 0 || got.Deep[0].Text != text {
			t.Errorf("%q is read as %+v, %v: %s", text, got, err, made)
		}
	}
}
