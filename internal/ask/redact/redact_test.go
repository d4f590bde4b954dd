package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/llm"
)

const secret = `sk-Ab1/x"\%+sksk-secret`

// spelled returns the key in every form that is found.
func spelled() map[string]string {
	quoted, _ := json.Marshal(secret)
	again, _ := json.Marshal(string(quoted))
	var all strings.Builder
	for _, c := range secret {
		fmt.Fprintf(&all, `\u%04X`, c)
	}
	forms := map[string]string{
		"plain": secret, "JSON": strings.Trim(string(quoted), `"`), "JSON in JSON": strings.Trim(string(again), `"`), "slash": strings.ReplaceAll(secret, "/", `\/`),
		"all escaped": all.String(), "query": url.QueryEscape(secret), "path": url.PathEscape(secret), "hex": hex.EncodeToString([]byte(secret)),
	}
	for _, lead := range []string{"", "a", "ab", "user:"} {
		forms["base64 "+lead] = base64.StdEncoding.EncodeToString([]byte(lead + secret + "tail"))
		forms["base64 for URLs "+lead] = base64.URLEncoding.EncodeToString([]byte(lead + secret))
	}
	return forms
}

func TestBytes(t *testing.T) {
	t.Parallel()
	r := New(secret)
	for name, form := range spelled() {
		for _, text := range []string{form, "before " + form + " after", form + form} {
			if got := string(r.Bytes([]byte(text))); !strings.Contains(got, Mark) || strings.Contains(got, form[2:len(form)-6]) {
				t.Errorf("%s: %q became %q", name, text, got)
			}
			if a, b := r.String(text), string(r.Bytes([]byte(text))); a != b {
				t.Errorf("%s: %q is not %q", name, a, b)
			}
		}
	}
	for _, same := range []string{"", "sk-", secret[:len(secret)-1], secret[1:], `\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\`, "%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%", strings.Repeat("s", 100)} {
		if got := string(r.Bytes([]byte(same))); got != same {
			t.Errorf("%q became %q", same, got)
		}
	}
	// A short key is removed only from errors and headers, and a very short one from nothing.
	few := New("EMPTY-1")
	a := &llm.Response{Text: "EMPTY-1"}
	if few.Response(a); a.Text != "EMPTY-1" || string(few.Bytes([]byte("EMPTY-1"))) != "EMPTY-1" || few.Stream() != nil || few.String("no EMPTY-1") != "no [key]" || string(few.Fault([]byte("EMPTY-1"))) != Mark {
		t.Errorf("%+v", a)
	}
	if none := New("x"); none != nil || none.String("x") != "x" || string(none.Fault([]byte("x"))) != "x" || none.Stream() != nil {
		t.Error("a very short key is looked for")
	}
}

func TestHeaderAndLLM(t *testing.T) {
	t.Parallel()
	r := New("sk-upstream-secret")
	h := http.Header{"X-Echo": {"a", "Bearer sk-upstream-secret"}, "Sk-Upstream-Secret": {"1"}, "Other": {"x"}}
	if got := r.Header(h); got["X-Echo"][1] != "Bearer [key]" || len(got) != 2 || h["X-Echo"][1] == got["X-Echo"][1] {
		t.Errorf("%v", got)
	}
	a := &llm.Response{
		Text: "It is sk-upstream-secret.", Thoughts: []llm.Thought{{Text: "sk-upstream-secret"}}, ToolCalls: []llm.ToolCall{{Arguments: `{"k":"sk-upstream-secret"}`}},
		Model: "sk-upstream-secret", ID: "sk-upstream-secret", JSON: json.RawMessage(`"sk-upstream-secret"`), Logprobs: []llm.Logprob{{Token: "sk-"}}, TokenIDs: []int{1},
	}
	r.Response(a)
	e := &llm.Error{Message: "bad sk-upstream-secret", Code: "sk-upstream-secret", Err: errors.New("sk-upstream-secret")}
	r.Error(e)
	b, _ := json.Marshal(a)
	if all := string(b) + e.Error() + e.Err.Error() + e.Code; strings.Contains(all, "upstream-secret") || len(a.Logprobs)+len(a.TokenIDs) > 0 {
		t.Error(all)
	}
}

// pass sends events through a Stream and returns its output.
func pass(t *testing.T, r *Redactor, events []string) (out []string) {
	t.Helper()
	s := r.Stream()
	emit := func(b []byte) error { out = append(out, string(b)); return nil }
	for _, e := range events {
		buf := []byte(e)
		if err := s.Add(buf, emit); err != nil {
			t.Fatal(err)
		}
		clear(buf) // the Stream must not keep it
	}
	if err := s.Flush(emit); err != nil {
		t.Fatal(err)
	}
	return out
}

func delta(index int, text string) string {
	b, _ := json.Marshal(text)
	return fmt.Sprintf("data: {\"id\":\"1\",\"choices\":[{\"index\":%d,\"delta\":{\"content\":%s}}]}\n\n", index, b)
}

// said joins the texts of a choice.
func said(t *testing.T, events []string, choice int) (text string) {
	t.Helper()
	for _, e := range events {
		var v struct {
			Choices []struct {
				Index int
				Delta struct{ Content string }
			}
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(e, "data: ")), &v); err != nil {
			t.Fatalf("%q: %v", e, err)
		}
		for _, c := range v.Choices {
			if c.Index == choice {
				text += c.Delta.Content
			}
		}
	}
	return text
}

// TestStream splits the key over events at random, among other text and another choice. The output has
// at most its first characters.
func TestStream(t *testing.T) {
	t.Parallel()
	r := New(secret)
	random := rand.New(rand.NewPCG(1, 2))
	text := "The key is " + secret + ", sk-sk-Ab and so on: " + secret + secret + "."
	for range 500 {
		var events []string
		for rest := text; rest != ""; {
			n := 1 + random.IntN(min(len(rest), 9))
			events = append(events, delta(0, rest[:n]))
			rest = rest[n:]
			if random.IntN(3) == 0 {
				events = append(events, delta(1, "one"))
			}
		}
		out := pass(t, r, events)
		got := said(t, out, 0)
		if len(out) != len(events) || strings.Contains(got, secret[holdFrom:]) || strings.Count(got, Mark) != 3 || !strings.HasSuffix(got, ".") || !strings.HasPrefix(got, "The key is ") {
			t.Fatalf("%q of %q", got, events)
		}
		if a, b := said(t, out, 1), said(t, events, 1); a != b {
			t.Fatalf("%q, want %q", a, b)
		}
	}
}

// TestStreamSame checks that a stream without the key does not change, and that nothing is held that
// cannot be the key.
func TestStreamSame(t *testing.T) {
	t.Parallel()
	r := New(secret)
	events := []string{": ping\n\n", delta(0, "so"), delta(0, "s"), delta(0, "sk-"), delta(0, "sk-A"), delta(0, "b2"), "data: {\"open\n\n", "data: [DONE]\n\n"}
	if got := pass(t, r, events); strings.Join(got, "") != strings.Join(events, "") {
		t.Errorf("%q", got)
	}
	s, n := r.Stream(), 0
	for _, e := range events[:4] {
		_ = s.Add([]byte(e), func([]byte) error { n++; return nil })
	}
	if n != 4 {
		t.Errorf("%d of 4 came out", n)
	}
	_ = s.Add([]byte(events[4]), func([]byte) error { n++; return nil })
	for range 2 * maxHeld / 64 { // the held bytes are bounded
		_ = s.Add([]byte(delta(1, strings.Repeat("x", 64))), func([]byte) error { n++; return nil })
	}
	if n < 5 || s.size > maxHeld {
		t.Errorf("%d came out, %d are held", n, s.size)
	}
	var none *Redactor
	if got := pass(t, none, []string{delta(0, secret)}); said(t, got, 0) != secret {
		t.Error("it looks for nothing")
	}
}

// TestStreamHolds checks that held text that may be a key is never sent because too much is held, and
// that two keys are both removed.
func TestStreamHolds(t *testing.T) {
	t.Parallel()
	r := New("sk-other-0123456789", secret)
	large := delta(1, strings.Repeat("x", 2*maxHeld))
	out := pass(t, r, []string{delta(0, secret[:11]), large, delta(0, secret[11:]+" sk-oth"), delta(0, "er-0123456789."), "data: [DONE]\n\n"})
	if got := said(t, out[:4], 0); got != Mark+" "+Mark+"." {
		t.Errorf("%q", got)
	}
	if b, err := r.Body([]byte(`[{"text":"`+"sk-other-"+`"},{"text":"0123456789"}]`), false); err != nil || string(b) != `[{"text":"[key]"},{"text":""}]` {
		t.Errorf("%s, %v", b, err)
	}
	many := make([]string, 0, 3)
	for i := range maxThreads + 1 {
		many = append(many, fmt.Sprintf(`"m%d":"s"`, i))
	}
	if _, err := r.Body([]byte("{"+strings.Join(many, ",")+"}"), false); err == nil {
		t.Error("more texts than can be followed are let through")
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(delta(0, "sk-A")+delta(0, secret[4:])), uint8(7))
	f.Add([]byte(`"\"%5c\\u0073`), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, size uint8) {
		r := New(secret)
		var events []string
		for rest := b; len(rest) > 0; {
			n := min(len(rest), int(size)+1)
			events = append(events, string(rest[:n]))
			rest = rest[n:]
		}
		for _, e := range pass(t, r, events) {
			if strings.Contains(e, secret) {
				t.Errorf("%q", e)
			}
		}
		if bytes.Contains(r.Bytes(b), []byte(secret)) {
			t.Errorf("%q", b)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	r := New("sk-proj-0123456789abcdef0123456789abcdef0123456789abcdef")
	s, e := r.Stream(), []byte(delta(0, " sentences"))
	b.SetBytes(int64(len(e)))
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Add(e, func([]byte) error { return nil })
	}
}
