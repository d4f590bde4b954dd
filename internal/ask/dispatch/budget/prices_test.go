package budget

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/internal/ask/price"
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
	if n := reservedInput(p, page); n < 10_000 || n > 20_000 {
		t.Errorf("%d tokens are set aside for a page", n)
	}
	if n := reservedInput(p, link); n != p.Context {
		t.Errorf("%d tokens are set aside for a link, want %d", n, p.Context)
	}
	text, heard := p.Worst(reservedInput(p, sound), 1, false), Worst(p, sound, false)
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

// TestFilesAreCapped: a file is not read beyond the context, whatever its size. Without a known one, all of it counts.
func TestFilesAreCapped(t *testing.T) {
	t.Parallel()
	p := price.Price{Rates: price.Rates{Input: llm.Dollar}, Context: 200_000}
	scan := withFile(&llm.File{MediaType: llm.MediaPDF, Data: append([]byte(llmtest.PDF), make([]byte, 5_000_000)...)})
	if n := reservedInput(p, scan); n != p.Context {
		t.Errorf("%d tokens are set aside, want %d", n, p.Context)
	}
	if n := MaxInput(p, scan); n != 2*p.Context+hiddenTokens {
		t.Errorf("%d tokens are believed", n)
	}
	p.Context = 0
	if n := reservedInput(p, scan); n < 5_000_000 {
		t.Errorf("%d tokens are set aside", n)
	}
}

// TestUncountedAudio: where an answer does not say how much of the input is sound, all of it is charged as sound.
func TestUncountedAudio(t *testing.T) {
	t.Parallel()
	p := price.Price{Rates: price.Rates{Input: llm.Dollar, Audio: 5 * llm.Dollar}, Context: 200_000}
	sound := withFile(&llm.File{MediaType: llm.MediaWAV, Data: []byte(llmtest.WAV)})
	for _, c := range []struct {
		req   *llm.Request
		audio int
		want  llm.Money
	}{{sound, 0, p.Audio / 1000}, {sound, 500, (p.Audio + p.Input) / 2000}, {asked(1), 0, p.Input / 1000}} {
		u := llm.Usage{Input: 1000, Audio: c.audio, Output: 1}
		a := Attempt{Request: c.req, Price: p}
		charge, err := a.Settle(&llm.Response{Text: "yes", Usage: u}, nil)
		if err != nil || charge.Cost != c.want || charge.used != u {
			t.Errorf("%v: %+v, want %v", err, charge, c.want)
		}
		if charge, _ := a.Settle(nil, &llm.Error{Usage: u}); charge.Cost != c.want {
			t.Errorf("a failure: %v, want %v", charge.Cost, c.want)
		}
	}
	none, _ := Attempt{Request: sound, Price: p}.Settle(&llm.Response{Text: "yes"}, nil)
	if least := p.WithAudio().Cost(llm.Usage{Input: maxPrompt(p, sound)}, false); none.Cost < least {
		t.Errorf("without usage: %v, want at least %v", none.Cost, least)
	}
}

// TestStoredAudio: a prompt stored at Gemini may hold sound.
func TestStoredAudio(t *testing.T) {
	t.Parallel()
	p := price.Price{Rates: price.Rates{Input: llm.Dollar, Audio: 5 * llm.Dollar}, Context: 200_000}
	for member, value := range storedPrompts() {
		req := asked(1)
		req.Extra = map[string]json.RawMessage{member: json.RawMessage(value)}
		if got, want := Worst(p, req, false), p.WithAudio().Worst(p.Context, 1, false); got != want {
			t.Errorf("%s: %v is set aside, want %v", value, got, want)
		}
	}
	req := asked(1)
	req.Extra = map[string]json.RawMessage{"extra_body": []byte(`{"google":{"thinking_config":{"thinking_budget":9}}}`)}
	if got, want := Worst(p, req, false), p.Worst(p.Context, 1, false); got != want {
		t.Errorf("without a stored prompt, %v is set aside, want %v", got, want)
	}
}

// storedPrompts are members of a body that name a prompt stored at Gemini, in its own format and in OpenAI's.
func storedPrompts() map[string]string {
	return map[string]string{
		"cachedContent": `"cachedContents/1"`, "cached_content": `"cachedContents/1"`, "google": `{"cached_content":"cachedContents/1"}`,
		"extra_body": `{"google":{"cached\u005fcontent":"cachedContents/1","cached_content":null}}`,
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
		if err := prices.unpricedError(req); (err != nil) != refused || refused && !strings.Contains(err.Error(), "input_audio") {
			t.Errorf("%s: %v", models, err)
		}
		for member, value := range storedPrompts() {
			stored := &llm.Request{Model: req.Model, Fallbacks: req.Fallbacks, Extra: map[string]json.RawMessage{member: json.RawMessage(value)}}
			if err := prices.unpricedError(stored); (err != nil) != refused || refused && !(strings.Contains(err.Error(), member) && strings.Contains(err.Error(), ": the stored prompt may hold sound")) {
				t.Errorf("%s, %s: %v", models, value, err)
			}
		}
	}
}
