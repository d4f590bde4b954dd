package dialect

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/anthropic"
	"parley/internal/ask/wire/bedrock"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/gemini"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/internal/ask/wire/responses"
	"parley/llm"
	"parley/llm/llmtest"
)

var (
	paper = &llm.File{Name: "my_paper (2).pdf", MediaType: llm.MediaPDF, Data: []byte(llmtest.PDF)}
	link  = &llm.File{MediaType: llm.MediaPDF, URL: "https://example.com/a.pdf"}
	talk  = &llm.File{MediaType: llm.MediaWAV, Data: []byte(llmtest.WAV)}
	song  = &llm.File{MediaType: llm.MediaMP3, Data: []byte("ID3\x04\x00\x00")}
	heard = &llm.File{MediaType: llm.MediaMP3, URL: "https://example.com/a.mp3"}
)

// fileFormat is a format with what it makes of files: a part as it is written, or why it is not.
type fileFormat struct {
	name  string
	write func([]byte, *llm.Request, provider.Capability, bool) ([]byte, []string, error)
	read  func(*request.Reader, string, []byte) bool
	wants map[*llm.File]string
}

func fileFormats() []fileFormat {
	const no, address = "the model takes no audio", "only by content"
	coded := func(f *llm.File) string {
		b, _ := json.Marshal(f.Data)
		return string(b)
	}
	pdf := `"data:application/pdf;base64,` + coded(paper)[1:]
	return []fileFormat{
		{"openai", openai.AppendRequest, openai.ReadMember, map[*llm.File]string{
			paper: `{"type":"file","file":{"filename":"my_paper (2).pdf","file_data":` + pdf + `}}`, link: address,
			talk: `{"type":"input_audio","input_audio":{"data":` + coded(talk) + `,"format":"wav"}}`,
			song: `{"type":"input_audio","input_audio":{"data":` + coded(song) + `,"format":"mp3"}}`, heard: address,
		}},
		{"responses", responses.AppendRequest, responses.ReadMember, map[*llm.File]string{
			paper: `{"type":"input_file","filename":"my_paper (2).pdf","file_data":` + pdf + `}`,
			link:  `{"type":"input_file","file_url":"https://example.com/a.pdf"}`, talk: no, song: no, heard: no,
		}},
		{"anthropic", anthropic.AppendRequest, anthropic.ReadMember, map[*llm.File]string{
			paper: `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":` + coded(paper) + `},"title":"my_paper (2).pdf"}`,
			link:  `{"type":"document","source":{"type":"url","url":"https://example.com/a.pdf"}}`, talk: no, song: no, heard: no,
		}},
		{"gemini", gemini.AppendRequest, gemini.ReadMember, map[*llm.File]string{
			paper: `{"inlineData":{"mimeType":"application/pdf","data":` + coded(paper) + `}}`,
			link:  `{"fileData":{"mimeType":"application/pdf","fileUri":"https://example.com/a.pdf"}}`,
			talk:  `{"inlineData":{"mimeType":"audio/wav","data":` + coded(talk) + `}}`,
			song:  `{"inlineData":{"mimeType":"audio/mp3","data":` + coded(song) + `}}`,
			heard: `{"fileData":{"mimeType":"audio/mp3","fileUri":"https://example.com/a.mp3"}}`,
		}},
		{"bedrock", bedrock.AppendRequest, bedrock.ReadMember, map[*llm.File]string{
			paper: `{"document":{"name":"my paper (2)","format":"pdf","source":{"bytes":` + coded(paper) + `}}}`, link: address,
			talk: `{"audio":{"format":"wav","source":{"bytes":` + coded(talk) + `}}}`,
			song: `{"audio":{"format":"mp3","source":{"bytes":` + coded(song) + `}}}`, heard: address,
		}},
	}
}

func withParts(role llm.Role, parts ...llm.Part) *llm.Request {
	return &llm.Request{Model: "lab/m", MaxTokens: 9, Messages: []llm.Message{llm.User("Hello."), llm.Assistant("Yes?"), {Role: role, Parts: parts}}}
}

// TestFiles checks that every format writes files as its vendor wants them, and reads them back, or says why it cannot.
func TestFiles(t *testing.T) {
	t.Parallel()
	for _, f := range fileFormats() {
		for file, want := range f.wants {
			req := withParts(llm.RoleUser, llm.Part{Text: "See:"}, llm.Part{File: file})
			b, _, err := f.write(nil, req, provider.Capability{}, false)
			if !strings.HasPrefix(want, "{") {
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "messages[2].content[1], "+file.String()) || !strings.Contains(err.Error(), "lab/m") {
					t.Errorf("%s: %v: %s, %v", f.name, file, b, err)
				}
				continue
			}
			if err != nil || !strings.Contains(string(b), want) {
				t.Errorf("%s: %v:\n%s\nwant\n%s, %v", f.name, file, b, want, err)
				continue
			}
			var r request.Reader
			body.Members(b, func(key, v []byte) bool { f.read(&r, string(key), v); return true })
			got, expected := r.Request.Messages[2].Parts[1].File, *file
			if f.name == "gemini" {
				expected.Name = "" // it has none
			}
			if f.name == "bedrock" && !file.IsAudio() {
				expected.Name = "my paper (2)"
			}
			if len(r.Strange) > 0 || got == nil || !reflect.DeepEqual(*got, expected) {
				t.Errorf("%s: %v: read as %+v, %q", f.name, file, got, r.Strange)
			}
		}
	}
}

// TestFilesRefused checks that nothing is sent that a model or a format cannot take, and that the error says what to do.
func TestFilesRefused(t *testing.T) {
	t.Parallel()
	huge := &llm.File{MediaType: llm.MediaPDF, Data: append([]byte("%PDF-1.4"), make([]byte, 4_500_000)...)}
	for _, c := range []struct {
		only string // format; "" for all
		role llm.Role
		file *llm.File
		can  provider.Capability
		want string
	}{
		{"", llm.RoleUser, paper, provider.Capability{NoDocuments: true}, "the model takes no PDFs: send its text, or its pages as images"},
		{"", llm.RoleUser, talk, provider.Capability{NoAudio: true}, "the model takes no audio: send a transcript as text"},
		{"", llm.RoleUser, &llm.File{MediaType: llm.MediaPDF, Data: []byte("GIF89a")}, provider.Capability{}, "its content is not of the type application/pdf"},
		{"", llm.RoleUser, &llm.File{MediaType: "application/zip", Data: []byte("PK")}, provider.Capability{}, "want application/pdf, audio/wav or audio/mp3"},
		{"", llm.RoleUser, &llm.File{MediaType: llm.MediaPDF, URL: "file:///etc/passwd"}, provider.Capability{}, "no address that begins with"},
		{"", llm.RoleSystem, paper, provider.Capability{}, "put it into a message of the user: those of the system have only text"},
		{"", llm.RoleAssistant, paper, provider.Capability{}, "put it into a message of the user: those of the assistant have only text"},
		{"openai", llm.RoleTool, paper, provider.Capability{}, "put it into a message of the user after the result of the tool"},
		{"bedrock", llm.RoleTool, talk, provider.Capability{}, "put it into a message of the user after the result of the tool"},
		{"bedrock", llm.RoleUser, huge, provider.Capability{}, "at most 4500000 bytes"},
	} {
		for _, f := range fileFormats() {
			if c.only != "" && c.only != f.name {
				continue
			}
			_, _, err := f.write(nil, withParts(c.role, llm.Part{Text: "See:"}, llm.Part{File: c.file}), c.can, false)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v of the %s: %v, want %q", f.name, c.file, c.role, err, c.want)
			}
		}
	}
	if _, _, err := bedrock.AppendRequest(nil, withParts(llm.RoleUser, llm.Part{File: paper}), provider.Capability{}, false); err == nil || !strings.Contains(err.Error(), "add a text") {
		t.Errorf("a document alone at Bedrock: %v", err)
	}
	if b, _, err := openai.AppendRequest(nil, withParts(llm.RoleUser, llm.Part{File: link}), provider.Capability{FileLinks: true}, false); err != nil || !strings.Contains(string(b), `"file_data":"https://example.com/a.pdf"`) {
		t.Errorf("a link at OpenRouter: %s, %v", b, err)
	}
}

// TestToolFiles checks the formats whose tools can return documents.
func TestToolFiles(t *testing.T) {
	t.Parallel()
	for _, f := range fileFormats() {
		if f.name == "openai" {
			continue
		}
		req := withParts(llm.RoleTool, llm.Part{Text: "See:"}, llm.Part{File: paper})
		req.Messages[1].ToolCalls = []llm.ToolCall{{ID: "t1", Name: "look", Arguments: "{}"}}
		req.Messages[2].ToolCallID = "t1"
		if b, _, err := f.write(nil, req, provider.Capability{}, false); err != nil || !strings.Contains(string(b), f.wants[paper]) {
			t.Errorf("%s: %s, %v", f.name, b, err)
		}
	}
}

// TestModelsAndFiles checks what is known of models.
func TestModelsAndFiles(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{ // what it takes
		"openai/gpt-5.2": "pdf", "openai/gpt-audio-mini": "wav", "openai/gpt-4o": "pdf", "openai/gpt-3.5-turbo": "", "openai/o3-mini": "", "openai/o3": "pdf",
		"openai-responses/gpt-5.2": "pdf", "azure/gpt-4o-audio-preview": "wav", "anthropic/claude-opus-4-6": "pdf", "anthropic/claude-3-haiku": "",
		"gemini/gemini-2.5-flash": "pdf wav", "vertex/gemini-2.5-flash": "pdf wav", "bedrock/us.anthropic.claude-sonnet-4-5": "pdf", "bedrock/mistral.voxtral-mini": "wav",
		"vllm/voxtral": "wav", "deepseek/deepseek-chat": "", "groq/openai/gpt-oss-120b": "", "openrouter/any": "pdf wav", "sim/small": "pdf wav",
	} {
		name, model, _ := strings.Cut(model, "/")
		p, _ := provider.Lookup(name)
		var got []string
		for _, f := range []*llm.File{paper, talk} {
			if p.Capability(model).Unfit(p.Dialect, f) == "" {
				got = append(got, f.Format())
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s/%s takes %q, want %q", name, model, got, want)
		}
	}
}

// TestSchemaOrder: every wire format keeps the order of the properties of a schema. Models answer in that order, so a judge
// gives its reason before its verdict.
func TestSchemaOrder(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"reason":{"type":"string"},"zeta":{"type":"integer"},"alpha":{"type":"boolean"}},"required":["reason","zeta","alpha"],"additionalProperties":false}`
	for name, form := range map[string]func([]byte, *llm.Request, provider.Capability, bool) ([]byte, []string, error){
		"chat": openai.AppendRequest, "responses": responses.AppendRequest, "messages": anthropic.AppendRequest,
		"gemini": gemini.AppendRequest, "vertex": gemini.AppendVertexRequest, "bedrock": bedrock.AppendRequest,
	} {
		req := &llm.Request{Model: "m", MaxTokens: 10, Messages: []llm.Message{llm.User("?")}, Schema: &llm.Schema{Name: "judgement", JSON: []byte(schema)}}
		b, dropped, err := form(nil, req, provider.Capability{}, false)
		at := func(property string) int { return bytes.Index(b, []byte(property)) }
		if err != nil || len(dropped) > 0 || at("reason") < 0 || !(at("reason") < at("zeta") && at("zeta") < at("alpha")) {
			t.Errorf("%s: %s, dropped %v, %v", name, b, dropped, err)
		}
	}
}
