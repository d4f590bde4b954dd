package provider

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	"parley/internal/kit/testkit"
	"parley/llm"
)

// row describes a preset, as far as its data says.
func row(p Provider) []string {
	yes := func(ok bool) string {
		if ok {
			return "yes"
		}
		return "no"
	}
	address := p
	address.BaseURL = cmp.Or(p.BaseURL, p.Example)
	c := p.Capability("any")
	schema := yes(address.FollowsSchema("any"))
	switch {
	case c.NoSchema:
		schema = "in the prompt"
	case c.SchemaInPrompt:
		schema = "yes, and in the prompt"
	}
	_, batches := p.BatchLimits()
	key := "none"
	switch {
	case p.KeyEnv != "":
		key = "`" + p.KeyEnv + "`"
	case len(p.KeyCommand) > 0:
		key = "`" + CommandLine(p.KeyCommand) + "`"
	case p.Credentials == CredentialsGoogle:
		key = "Google's credentials, or a key"
	case p.Signs():
		key = "AWS credentials, or a key"
	}
	images := "bytes and links"
	if p.Dialect == "bedrock" {
		images = "bytes"
	}
	pdfs, audio := files(p, llm.MediaPDF, "%PDF-", "any"), files(p, llm.MediaMP3, "ID3", "any")
	if audio == "no" && files(p, llm.MediaMP3, "ID3", "gpt-audio")+files(p, llm.MediaMP3, "ID3", "voxtral") != "nono" {
		audio = "some models"
	}
	caching := "nothing is asked for"
	switch {
	case p.Dialect == "anthropic":
		caching = "marks"
	case p.Dialect == "bedrock":
		caching = "marks, for models that know them"
	case c.CacheKey:
		caching = "a key for each session"
	}
	return []string{"`" + p.Name + "`", p.Dialect, yes(!c.NoTools), schema, images, pdfs, audio, yes(batches), caching, key, cmp.Or(p.Tried, "nothing")}
}

// files says how a model takes files of a type.
func files(p Provider, media, content, model string) string {
	c := p.Capability(model)
	switch {
	case c.Unfit(p.Dialect, &llm.File{MediaType: media, Data: []byte(content)}) != "":
		return "no"
	case c.Unfit(p.Dialect, &llm.File{MediaType: media, URL: "https://x/y"}) != "":
		return "bytes"
	}
	return "bytes and links"
}

// TestDocs keeps the table of providers in the documents equal to the presets.
func TestDocs(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../../../docs/how-to/providers.md", "<!-- the table of providers: go test ./internal/ask/provider -update -->\n", "<!-- end -->\n"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("\n| provider | dialect | tools | schemas | images | PDFs | audio | batches | prompt caching | key | tried with |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, p := range Presets() {
		fmt.Fprintf(&table, "| %s |\n", strings.Join(row(p), " | "))
	}
	table.WriteString("\n")
	before, rest, ok := strings.Cut(string(b), begin)
	got, after, found := strings.Cut(rest, end)
	switch {
	case !ok || !found:
		t.Fatal("the table has no place")
	case testkit.Update() && got != table.String():
		if err := os.WriteFile(file, []byte(before+begin+table.String()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	case got != table.String():
		t.Errorf("the table is not that of the presets: run go test ./internal/ask/provider -update\n%s", table.String())
	}
}
