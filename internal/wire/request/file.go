package request

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"

	"parley/internal/wire/body"
	"parley/llm"
)

// CheckFiles sets Err if a message has a file that the model does not take, or not there. Call it last: nothing is sent then.
func (w *Writer) CheckFiles(dialect string) {
	for i := range w.Req.Messages {
		m := &w.Req.Messages[i]
		for k := range m.Parts {
			f := m.Parts[k].File
			if f == nil || w.Err != nil {
				continue
			}
			if why := cmp.Or(w.Can.Unfit(dialect, f), misplaced(dialect, m, f)); why != "" {
				w.Err = fmt.Errorf("messages[%d].content[%d], %v, cannot be sent to %s: %s", i, k, f, w.Req.Model, why)
			}
		}
	}
}

// misplaced says why a file cannot be in a message.
func misplaced(dialect string, m *llm.Message, f *llm.File) string {
	switch {
	case dialect == "bedrock" && m.Role == llm.RoleUser && !f.IsAudio() && m.Text() == "":
		return "add a text to the message: Bedrock wants one beside a document"
	case m.Role == llm.RoleUser:
		return ""
	case m.Role != llm.RoleTool:
		return "put it into a message of the user: those of the " + string(m.Role) + " have only text"
	case dialect == "openai" || dialect == "bedrock" && f.IsAudio():
		return "put it into a message of the user after the result of the tool: results have no such files in this format"
	}
	return ""
}

// DocumentName returns the name of a document, for formats that require one.
func DocumentName(f *llm.File) string { return cmp.Or(f.Name, "document.pdf") }

// AppendDocument appends the content of a file as a data: URL, or its address.
func AppendDocument(b []byte, f *llm.File) []byte {
	if len(f.Data) == 0 {
		return body.String(b, f.URL)
	}
	return appendData(b, f.MediaType, f.Data)
}

// AppendBase64 appends data as a string.
func AppendBase64(b, data []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(b, '"'), data), '"')
}

// document decodes a document by its data: URL or address.
func document(name, address string) (llm.Part, bool) {
	if link := strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://"); link {
		return llm.Part{File: &llm.File{Name: name, URL: address, MediaType: llm.MediaPDF}}, true
	}
	data, ok := strings.CutPrefix(address, "data:"+llm.MediaPDF+";base64,")
	b, err := base64.StdEncoding.DecodeString(data)
	return llm.Part{File: &llm.File{Name: name, MediaType: llm.MediaPDF, Data: b}}, ok && err == nil && len(b) > 0
}

// audioOf decodes a recording of OpenAI's.
func audioOf(v []byte) (llm.Part, bool) {
	data, err := base64.StdEncoding.DecodeString(Str(v, "data"))
	f := &llm.File{MediaType: "audio/" + Str(v, "format"), Data: data}
	return llm.Part{File: f}, err == nil && len(data) > 0 && f.Format() != ""
}

// FileOf decodes a file of a media type, by content or by address. It returns false for types that are not files of
// messages.
func FileOf(media, url, data string) (*llm.File, bool) {
	f := &llm.File{MediaType: media, URL: url}
	if f.Format() == "" {
		return nil, false
	}
	if data == "" {
		return f, url != ""
	}
	b, err := base64.StdEncoding.DecodeString(data)
	f.URL, f.Data = "", b
	return f, err == nil && len(b) > 0
}
