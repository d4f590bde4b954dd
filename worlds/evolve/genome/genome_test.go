package genome

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// prompts draws prompts of all forms: sentences, steps, examples, odd white space.
func prompts() *rapid.Generator[string] {
	part := rapid.SampledFrom([]string{
		"Solve it.", "Think step by step! ", "Is it so? Yes. no. Well…", "1. List the facts.", "- check 3.5 twice", "Example: Q is 3.\nA is 4.\n\n",
		"End with the answer on a line of its own.", "\n", "\n\n", "  ", "\t", "Übung macht Meister. Ça va.", "#### 3", "a", "{{x}} %s \x00", "First, read. Then, write.",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(part, 0, 12).Draw(t, "parts"), rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "between"))
	})
}

// TestRoundTrip checks that parsing a prompt loses nothing.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(prompts(), rapid.String()).Draw(t, "text")
		g := Parse(text)
		if got, want := g.String(), strings.TrimSpace(text); got != want {
			t.Fatalf("%q is written %q", want, got)
		}
		for _, s := range g {
			if s.Text == "" || s.Text != strings.TrimSpace(s.Text) || !slices.Contains(Roles(), s.Role) {
				t.Fatalf("%q has the span %+v", text, s)
			}
		}
	})
}

func TestRoles(t *testing.T) {
	t.Parallel()
	g := Parse("You are an expert. Solve e.g. this one.\n\n1. List facts.\n- Check them\n\nExample: 2 and 2.\nThat is 4.\n\nEnd with the answer on its own line.")
	want := []Span{
		{Instructions, "You are an expert.", " "}, {Instructions, "Solve e.g. this one.", "\n\n"}, {Steps, "1. List facts.", "\n"}, {Steps, "- Check them", "\n\n"},
		{Examples, "Example: 2 and 2.\nThat is 4.", "\n\n"}, {Format, "End with the answer on its own line.", ""},
	}
	if !slices.Equal(g, want) {
		t.Errorf("%q", g)
	}
	for _, p := range Phrases() {
		if got := FromTexts(p.Text); len(got) != 1 || got[0] != p {
			t.Errorf("%q, which is %s, is read as %q", p.Text, p.Role, got)
		}
	}
}

func texts(gs ...Genome) []string {
	var all []string
	for _, g := range gs {
		for _, s := range g {
			all = append(all, s.Text)
		}
	}
	slices.Sort(all)
	return all
}

// TestCross checks that children have exactly the spans of their parents, and that parents are unchanged.
func TestCross(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := Parse(prompts().Draw(t, "a")), Parse(prompts().Draw(t, "b"))
		wasA, wasB := a.String(), b.String()
		method := rapid.SampledFrom(Crossovers()).Draw(t, "method")
		seed := rapid.Uint64().Draw(t, "seed")
		one, two := Cross(method, a, b, rand.New(rand.NewPCG(seed, 1)))
		if !slices.Equal(texts(one, two), texts(a, b)) {
			t.Fatalf("%s: %q and %q of %q and %q", method, one, two, a, b)
		}
		if a.String() != wasA || b.String() != wasB {
			t.Fatalf("%s: the parents were changed", method)
		}
		again, _ := Cross(method, a, b, rand.New(rand.NewPCG(seed, 1)))
		if again.String() != one.String() {
			t.Fatalf("%s: with the same chance %q and then %q", method, one, again)
		}
		if method == "section" {
			for _, role := range Roles() {
				if got := texts(one.withRole(role)); !slices.Equal(got, texts(a.withRole(role))) && !slices.Equal(got, texts(b.withRole(role))) {
					t.Fatalf("%s of %q are of neither parent alone", role, one)
				}
			}
		}
	})
}

// TestCrossMixes checks that children are new if the parents can be cut.
func TestCrossMixes(t *testing.T) {
	t.Parallel()
	a, b := FromTexts("A one. A two. A three. A four.", "- a step"), FromTexts("B one. B two. B three. B four.", "- b step")
	for _, method := range Crossovers() {
		mixed := 0
		for seed := range uint64(50) {
			one, two := Cross(method, a, b, rand.New(rand.NewPCG(seed, 2)))
			if one.String() != a.String() && one.String() != b.String() && two.String() != a.String() {
				mixed++
			}
			if method == "single_point" && (!strings.HasPrefix(one.String(), "A one.") || !strings.HasSuffix(one.String(), "- b step")) {
				t.Errorf("%q", one)
			}
			if method == "two_point" && (!strings.HasPrefix(one.String(), "A one.") || !strings.HasSuffix(one.String(), "- a step") && !strings.HasSuffix(one.String(), "- b step")) {
				t.Errorf("%q", one)
			}
		}
		if mixed < 20 {
			t.Errorf("%s: new in %d of 50", method, mixed)
		}
	}
}

// TestMutate checks each operator and the limits.
func TestMutate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := Parse(prompts().Draw(t, "prompt"))
		was := g.String()
		limits := Limits{Min: rapid.IntRange(0, 3).Draw(t, "min"), Max: rapid.IntRange(3, 14).Draw(t, "max"), Insertions: rapid.IntRange(0, 3).Draw(t, "insertions")}
		method := rapid.SampledFrom(Mutations()).Draw(t, "method")
		out := Mutate(method, g, Phrases(), limits, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)))
		if g.String() != was {
			t.Fatal("the prompt itself was changed")
		}
		grown := len(out) - len(g)
		ok := map[string]bool{
			"edit": grown == 0, "insert": grown >= 0 && grown <= max(1, limits.Insertions), "delete": grown == 0 || grown == -1,
			"swap": slices.Equal(texts(out), texts(g)), "duplicate": grown == 0 || grown == 1,
		}[method]
		if !ok || grown > 0 && len(out) > limits.Max || grown < 0 && len(out) < limits.Min {
			t.Fatalf("%s of %q within %+v: %q", method, g, limits, out)
		}
		if method == "edit" && len(g) > 0 && out.String() == was {
			t.Fatalf("edit of %q changes nothing", g)
		}
	})
}

func TestMutateNothing(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for _, method := range append(Mutations(), "no such") {
		if out := Mutate(method, nil, nil, Limits{}, r); len(out) != 0 {
			t.Errorf("%s of nothing: %q", method, out)
		}
	}
}

// TestDiversity checks that diversity is 0 for equal prompts, 1 for prompts without a common pair of words, and in between
// otherwise.
func TestDiversity(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := Parse(prompts().Draw(t, "a")), Parse(prompts().Draw(t, "b"))
		d := Diversity([]Genome{a, b})
		if d < 0 || d > 1 || math.Abs(d-Diversity([]Genome{b, a})) > 1e-12 || Diversity([]Genome{a, a}) != 0 {
			t.Fatalf("the diversity of %q and %q is %v", a, b, d)
		}
	})
	near := Diversity([]Genome{FromTexts("Work step by step and check."), FromTexts("Work step by step and stop.")})
	far := Diversity([]Genome{FromTexts("Work step by step and check."), FromTexts("Say hello.")})
	if near >= far || far != 1 {
		t.Errorf("near %v, far %v, want less than 1, and 1", near, far)
	}
	if d := Diversity([]Genome{FromTexts("a b"), FromTexts("a b"), FromTexts("c d")}); math.Abs(d-2.0/3) > 1e-12 || Diversity(nil) != 0 {
		t.Errorf("diversity %v, want 2/3; of nothing %v, want 0", d, Diversity(nil))
	}
}

// TestDiff checks that the lines that stayed and those that are new make up the new prompt, and that those that stayed and
// those that are gone make up the old one.
func TestDiff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := Parse(prompts().Draw(t, "a")), Parse(prompts().Draw(t, "b"))
		was, is := "", ""
		for line := range strings.Lines(Diff(a, b)) {
			switch line[0] {
			case ' ':
				was, is = was+line[2:], is+line[2:]
			case '-':
				was += line[2:]
			case '+':
				is += line[2:]
			}
		}
		plain := func(g Genome) (s string) {
			for _, span := range g {
				s += span.Text + "\n"
			}
			return s
		}
		if was != plain(a) || is != plain(b) {
			t.Fatalf("from %q to %q:\n%s", a, b, Diff(a, b))
		}
	})
}
