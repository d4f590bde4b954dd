package growth

import (
	"slices"
	"testing"

	"parley/journal"
)

// TestCodeChanges: each file that differs is named once, and code that is not in both is not compared.
func TestCodeChanges(t *testing.T) {
	t.Parallel()
	code := func(name string, files ...string) journal.Code {
		c := journal.Code{Name: name, Language: "python 3.11.7", Files: map[string]string{}}
		for i := 0; i < len(files); i += 2 {
			c.Files[files[i]] = files[i+1]
		}
		return c
	}
	for name, c := range map[string]struct {
		was, now []journal.Code
		want     []string
	}{
		"same":           {[]journal.Code{code("a.py:A", "a.py", "1")}, []journal.Code{code("a.py:A", "a.py", "1")}, nil},
		"edited":         {[]journal.Code{code("a.py:A", "a.py", "1", "b.py", "1")}, []journal.Code{code("a.py:A", "a.py", "1", "b.py", "2")}, []string{"b.py has changed"}},
		"new import":     {[]journal.Code{code("a.py:A", "a.py", "1")}, []journal.Code{code("a.py:A", "a.py", "2", "b.py", "1")}, []string{"a.py has changed", "b.py is now part of a.py:A"}},
		"lost import":    {[]journal.Code{code("a.py:A", "a.py", "1", "b.py", "1")}, []journal.Code{code("a.py:A", "a.py", "1")}, []string{"b.py is no longer part of a.py:A"}},
		"two of a file":  {[]journal.Code{code("a.py:A", "a.py", "1"), code("a.py:B", "a.py", "1")}, []journal.Code{code("a.py:A", "a.py", "2"), code("a.py:B", "a.py", "2")}, []string{"a.py has changed"}},
		"another":        {[]journal.Code{code("a.py:A", "a.py", "1")}, []journal.Code{code("b.py:B", "b.py", "1")}, nil},
		"in the program": {nil, []journal.Code{code("a.py:A", "a.py", "1")}, nil},
	} {
		if got := CodeChanges(c.was, c.now); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
