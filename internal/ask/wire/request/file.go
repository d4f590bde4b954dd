package request

import (
	"cmp"
	"encoding/base64"
	"errors"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/llm"
)

// CheckFiles sets Err if a message has a file that the model does not take, or not there. Call it last: nothing is sent then.
func (w *Writer) CheckFiles(dialect string) {
	if why := w.Can.Misfit(dialect, w.Req); why != "" && w.Err == nil {
		w.Err = errors.New(why)
	}
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
