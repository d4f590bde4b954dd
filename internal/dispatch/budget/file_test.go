package budget

import (
	"strings"
	"testing"

	"parley/internal/price"
	"parley/llm"
	"parley/llm/llmtest"
)

func withFile(f *llm.File) *llm.Request {
	return &llm.Request{Model: "lab/any", MaxTokens: 1, Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{{Text: "What?"}, {File: f}}}}}
}

// TestFilesAreReserved: what is set aside for a file covers it, and all of the context where its length is not known. The usage
// of a document is believed up to the context.
func TestFilesAreReserved(t *testing.T) {
	t.Parallel()
	p := price.Price{Rates: price.Rates{Input: llm.Dollar, Audio: 5 * llm.Dollar}, Context: 200_000}
	page := withFile(&llm.File{MediaType: llm.MediaPDF, Data: []byte(llmtest.PDF)})
	link := withFile(&llm.File{MediaType: llm.MediaPDF, URL: "https://x/a.pdf"})
	sound := withFile(&llm.File{MediaType: llm.MediaWAV, Data: []byte(llmtest.WAV)})
	if n := promptOf(p, page); n < 10_000 || n > 20_000 {
		t.Errorf("%d tokens are set aside for a page", n)
	}
	if n := promptOf(p, link); n != p.Context {
		t.Errorf("%d tokens are set aside for a link, want %d", n, p.Context)
	}
	text, heard := p.Worst(promptOf(p, sound), 1, false), Worst(p, sound, false)
	if heard != 5*text {
		t.Errorf("%v is set aside for sound, and %v would be for text", heard, text)
	}
	for _, req := range []*llm.Request{page, link, sound} {
		a := Attempt{Request: req, Price: p}
		if v := a.judge(llm.Usage{Input: 150_000, Output: 1}, &llm.Response{Text: "yes"}); v != usageOK {
			t.Errorf("%v: the verdict is %v", req.Messages[0].Parts[1].File, v)
		}
	}
}

// TestAudioNeedsAPrice: a call with sound is refused if a budget must be kept and nobody knows what sound costs.
func TestAudioNeedsAPrice(t *testing.T) {
	t.Parallel()
	table, err := price.Read(strings.NewReader(`{"models":{"lab/deaf":{"input":1,"output":1},"lab/heard":{"input":1,"output":1,"audio":2}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	prices := NewPrices(table, func(string) bool { return true })
	req := withFile(&llm.File{MediaType: llm.MediaWAV, Data: []byte(llmtest.WAV)})
	for models, refused := range map[string]bool{"lab/deaf": true, "lab/heard": false, "lab/heard lab/deaf": true, "lab/heard lab/heard": false} {
		names := strings.Fields(models)
		req.Model, req.Fallbacks = names[0], names[1:]
		if err := prices.unpriced(req); (err != nil) != refused || refused && !strings.Contains(err.Error(), "input_audio") {
			t.Errorf("%s: %v", models, err)
		}
	}
}
