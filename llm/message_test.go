package llm_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/llm"
)

func TestMessageJSON(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		msg  llm.Message
		json string
	}{
		{"words", llm.User("hi"), `{"role":"user","content":"hi"}`},
		{"no words", llm.Assistant(""), `{"role":"assistant"}`},
		{"two parts", llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Text: "a"}, {Text: "b"}}},
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`},
		{"image by address", llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Image: &llm.Image{URL: "https://x/y.png", Detail: "low"}}}},
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"low"}}]}`},
		{"image by content", llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Image: &llm.Image{MediaType: "image/png", Data: []byte{1, 2}}}}},
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AQI="}}]}`},
		{"document by content", llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{File: &llm.File{Name: "a.pdf", MediaType: llm.MediaPDF, Data: []byte("%PDF-")}}}},
			`{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}]}`},
		{"document by address", llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{File: &llm.File{URL: "https://x/a.pdf", MediaType: llm.MediaPDF}}}},
			`{"role":"user","content":[{"type":"file","file":{"file_data":"https://x/a.pdf"}}]}`},
		{"audio", llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{File: &llm.File{MediaType: llm.MediaMP3, Data: []byte("ID3")}}}},
			`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"SUQz","format":"mp3"}}]}`},
		{"audio by address", llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{File: &llm.File{MediaType: llm.MediaWAV, URL: "https://x/a.wav"}}}},
			`{"role":"user","content":[{"type":"input_audio","input_audio":{"url":"https://x/a.wav","format":"wav"}}]}`},
		{"tool call", llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "f", Arguments: `{"a":`}}},
			`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]}`},
		{"tool result", llm.ToolResult("1", "ok"), `{"role":"tool","content":"ok","tool_call_id":"1"}`},
		{"tool failure", llm.Message{Role: llm.RoleTool, ToolCallID: "1", ToolFailed: true}, `{"role":"tool","tool_call_id":"1","tool_failed":true}`},
		{"thoughts", llm.Message{Role: llm.RoleAssistant, Thoughts: []llm.Thought{{Text: "hm", ID: "i", Signature: "s", Opaque: "o"}}},
			`{"role":"assistant","thoughts":[{"text":"hm","id":"i","signature":"s","opaque":"o"}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, err := json.Marshal(tt.msg)
			if err != nil || string(b) != tt.json {
				t.Fatalf("as JSON it is %s, %v, want %s", b, err, tt.json)
			}
			var back llm.Message
			if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, tt.msg) {
				t.Errorf("read back it is %+v, %v", back, err)
			}
		})
	}
}

func TestMessageFromOtherJSON(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want llm.Message
	}{
		{`{"role":"developer","content":"x"}`, llm.System("x")},
		{`{"role":"user","content":null}`, llm.User("")},
		{`{"role":"user","content":""}`, llm.User("")},
		{`{"role":"user","content":[]}`, llm.User("")},
		{`{"role":"user","content":[{"type":"text","text":""}]}`, llm.User("")},
		{`{"role":"user","content":[{"type":"input_text","text":"x"}]}`, llm.User("x")},
		{`{"role":"assistant","content":"x","name":"bob","refusal":null}`, llm.Assistant("x")},
		{`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"2","name":"g","arguments":"[]"}]}`,
			llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "f", Arguments: "{}"}, {ID: "2", Name: "g", Arguments: "[]"}}}},
	}
	for _, tt := range tests {
		var got llm.Message
		if err := json.Unmarshal([]byte(tt.in), &got); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s is read as %+v, %v", tt.in, got, err)
		}
	}
}

func TestMessageErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{`{}`, `role ""`},
		{`{"role":"king","content":"x"}`, `unknown role "king"; want one of system, user, assistant, tool`},
		{`{"role":"user","content":5}`, "want a string or a list of parts"},
		{`{"role":"user","content":{"type":"text"}}`, "want a string or a list of parts"},
		{`{"role":"user","content":[{"type":"input_audio"}]}`, `content part of type "input_audio": want text, image_url`},
		{`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA"}}]}`, "format, which is wav or mp3"},
		{`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"?","format":"wav"}}]}`, "base64"},
		{`{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}`, "give its content in file_data"},
		{`{"role":"user","content":[{"type":"file","file":{"file_data":"JVBERi0="}}]}`, "must be base64 in a data: URL"},
		{`{"role":"user","content":[{"type":"file","file":{"file_data":"data:audio/wav;base64,AAAA"}}]}`, "part of type input_audio"},
		{`{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,"}}]}`, "no content"},
		{`{"role":"user","content":[{"type":"image_url"}]}`, `content part of type "image_url"`},
		{`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png,abc"}}]}`, "must be base64"},
		{`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,***"}}]}`, "llm: image"},
		{`{"role":"user","content":["x"]}`, "want a string or a list of parts"},
		{`[]`, "cannot unmarshal"},
		{`{"role":"assistant","tool_calls":"x"}`, "cannot unmarshal"},
	}
	for _, tt := range tests {
		got := llm.User("before")
		err := json.Unmarshal([]byte(tt.in), &got)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error is %v, want it to say %q", tt.in, err, tt.want)
		}
		if !reflect.DeepEqual(got, llm.User("before")) {
			t.Errorf("%s: the message was changed to %+v", tt.in, got)
		}
	}
}

func TestMisplacedFiles(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*llm.File{
		"empty":    {MediaType: llm.MediaPDF},
		"no sound": {MediaType: llm.MediaWAV},
		"a bucket": {MediaType: llm.MediaPDF, URL: "gs://bucket/a.pdf"},
		"both":     {MediaType: llm.MediaPDF, URL: "https://x/a.pdf", Data: []byte("%PDF-")},
	} {
		if b, err := json.Marshal(llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Text: "x"}, {File: f}}}); err == nil || !strings.Contains(err.Error(), "content[1]") || f.Check() == nil {
			t.Errorf("%s: %s, %v", name, b, err)
		}
		req := llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{{File: f}}}}}
		if _, err := req.AppendDigested(nil); err == nil {
			t.Errorf("%s has a digest", name)
		}
	}
}

func TestMessageRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := genMessage(t)
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var back llm.Message
		if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("%+v became %s and then %+v, %v", m, b, back, err)
		}
		again, _ := json.Marshal(back)
		if string(again) != string(b) {
			t.Fatalf("%s became %s", b, again)
		}
	})
}

// genMessage draws messages in the form that reading gives them: no lone empty text.
func genMessage(t *rapid.T) llm.Message {
	text := rapid.String()
	m := llm.Message{
		Role:       rapid.SampledFrom([]llm.Role{llm.RoleSystem, llm.RoleUser, llm.RoleAssistant, llm.RoleTool}).Draw(t, "role"),
		ToolCallID: text.Draw(t, "id"), ToolFailed: rapid.Bool().Draw(t, "failed"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "parts") {
		m.Parts = append(m.Parts, genPart(t))
	}
	if len(m.Parts) == 1 && m.Parts[0] == (llm.Part{}) {
		m.Parts = nil
	}
	for range rapid.IntRange(0, 2).Draw(t, "thoughts") {
		m.Thoughts = append(m.Thoughts, llm.Thought{Text: text.Draw(t, "thought"), ID: text.Draw(t, "tid"), Signature: text.Draw(t, "sig"), Opaque: text.Draw(t, "opaque")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "calls") {
		m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: text.Draw(t, "cid"), Name: text.Draw(t, "name"), Arguments: text.Draw(t, "args")})
	}
	return m
}

func genPart(t *rapid.T) llm.Part {
	switch rapid.IntRange(0, 5).Draw(t, "sort") {
	case 0:
		return llm.Part{Text: rapid.String().Draw(t, "text")}
	case 1:
		return llm.Part{Image: &llm.Image{URL: "https://" + rapid.StringMatching(`[a-z./?=]{0,10}`).Draw(t, "url"), Detail: rapid.SampledFrom([]string{"", "low"}).Draw(t, "detail")}}
	case 2:
		return llm.Part{File: &llm.File{Name: rapid.String().Draw(t, "name"), URL: "https://x/" + rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "file"), MediaType: llm.MediaPDF}}
	}
	data := rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "data")
	switch rapid.IntRange(0, 2).Draw(t, "content") {
	case 0:
		return llm.Part{File: &llm.File{Name: rapid.String().Draw(t, "name"), MediaType: llm.MediaPDF, Data: data}}
	case 1:
		return llm.Part{File: &llm.File{MediaType: rapid.SampledFrom([]string{llm.MediaWAV, llm.MediaMP3}).Draw(t, "sound"), Data: data}}
	}
	return llm.Part{Image: &llm.Image{MediaType: rapid.SampledFrom([]string{"", "image/png", "image/webp"}).Draw(t, "type"), Data: data}}
}

func FuzzMessageJSON(f *testing.F) {
	f.Add(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQI="}}]}`)
	f.Add(`{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}},{"type":"file","file":{"file_data":"https://x/y"}}]}`)
	f.Add(`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"SUQz","format":"mp3"}},{"type":"input_audio","input_audio":{"url":"https://x/y","format":"wav"}}]}`)
	f.Add(`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`)
	f.Fuzz(func(t *testing.T, in string) {
		var m llm.Message
		if json.Unmarshal([]byte(in), &m) != nil {
			return
		}
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var back llm.Message
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%s was written as %s: %v", in, b, err)
		}
		if again, _ := json.Marshal(back); string(again) != string(b) {
			t.Fatalf("%s was written as %s and then %s", in, b, again)
		}
	})
}

func TestMessageText(t *testing.T) {
	t.Parallel()
	m := llm.Message{Parts: []llm.Part{{Text: "a"}, {Image: &llm.Image{URL: "x"}}, {Text: "b"}}}
	if m.Text() != "ab" || llm.User("hi").Text() != "hi" || llm.User("").Text() != "" {
		t.Errorf("texts are %q, %q, %q", m.Text(), llm.User("hi").Text(), llm.User("").Text())
	}
	if len(llm.User("").Parts) != 0 {
		t.Error("an empty text makes a part")
	}
}
