package llm

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// File is a document or a recording in a message, by address or by content. MediaType says which of the two it is.
type File struct {
	Name      string `json:"name,omitempty"`       // of a document, as paper.pdf. Some models see it.
	URL       string `json:"url,omitempty"`        // http(s) address; empty when Data is set
	MediaType string `json:"media_type,omitempty"` // MediaPDF, MediaWAV or MediaMP3
	Data      []byte `json:"data,omitempty"`
}

// The types of files that messages can hold.
const (
	MediaPDF = "application/pdf"
	MediaWAV = "audio/wav"
	MediaMP3 = "audio/mp3"
)

// MaxFileBytes bounds the content of a file: no provider takes larger ones in a request.
const MaxFileBytes = 50 << 20

// IsAudio reports whether f is a recording.
func (f *File) IsAudio() bool { return strings.HasPrefix(f.MediaType, "audio/") }

// Format returns the usual ending of the file's name: pdf, wav or mp3. It returns "" for a type that messages cannot hold.
func (f *File) Format() string {
	switch f.MediaType {
	case MediaPDF:
		return "pdf"
	case MediaWAV, "audio/wave", "audio/x-wav":
		return "wav"
	case MediaMP3, "audio/mpeg":
		return "mp3"
	default:
		return ""
	}
}

// DataURL returns the address of the file: its URL, or its content as a data: URL.
func (f *File) DataURL() string { return dataURL(f.URL, f.MediaType, f.Data) }

// String describes f in a few words, without its content.
func (f *File) String() string {
	s := strings.TrimSpace("document " + f.Name)
	if f.IsAudio() {
		s = "audio"
	}
	if len(f.Data) > 0 {
		return fmt.Sprintf("%s (%s, %d bytes)", s, f.MediaType, len(f.Data))
	}
	return s + " " + f.URL
}

// Check returns what is wrong with f: its type, its size, its address, or content of another type.
func (f *File) Check() error {
	switch {
	case f.Format() == "":
		return fmt.Errorf("its type is %q; want %s, %s or %s", f.MediaType, MediaPDF, MediaWAV, MediaMP3)
	case len(f.Data) > MaxFileBytes:
		return fmt.Errorf("it has %d bytes, and at most %d are allowed", len(f.Data), MaxFileBytes)
	case f.place() != nil:
		return f.place()
	case len(f.Data) > 0 && (&File{MediaType: MediaOf(f.Data)}).Format() != f.Format():
		return fmt.Errorf("its content is not of the type %s", f.MediaType)
	}
	return nil
}

// place returns what is wrong with where the content of f is. Such a file has no JSON.
func (f *File) place() error {
	if len(f.Data) > 0 && f.URL == "" || len(f.Data) == 0 && isWeb(f.URL) {
		return nil
	}
	return errors.New("the file has no content and no address that begins with http:// or https://, or it has both")
}

func isWeb(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}

// MediaOf returns the type of some content, whatever its name says: MediaPDF, MediaWAV, MediaMP3 or "".
func MediaOf(b []byte) string {
	switch {
	case bytes.Contains(b[:min(len(b), 1024)], []byte("%PDF-")): // not only at the beginning, as readers allow
		return MediaPDF
	case len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WAVE":
		return MediaWAV
	case bytes.HasPrefix(b, []byte("ID3")), len(b) > 1 && b[0] == 0xff && b[1]&0xe6 == 0xe2: // a frame of layer 3
		return MediaMP3
	default:
		return ""
	}
}

// wireFile is a part of OpenAI's chat completions. An address in it is ours, and OpenRouter's.
type wireFile struct {
	Name string `json:"filename,omitempty"`
	Data string `json:"file_data,omitempty"` // a data: URL, or an address
	ID   string `json:"file_id,omitempty"`
}

type wireAudio struct {
	Data   []byte `json:"data,omitempty"`
	URL    string `json:"url,omitempty"`
	Format string `json:"format"`
}

func toWireFile(f *File) wirePart {
	if f.IsAudio() {
		return wirePart{Type: "input_audio", Audio: &wireAudio{Data: f.Data, URL: f.URL, Format: strings.TrimPrefix(f.MediaType, "audio/")}}
	}
	return wirePart{Type: "file", File: &wireFile{Name: f.Name, Data: f.DataURL()}}
}

func (w *wireFile) file() (*File, error) {
	switch {
	case w.ID != "" && w.Data == "":
		return nil, errors.New("file_id names a file that a provider stores, and other providers do not know it: give its content in file_data, as data:application/pdf;base64,…")
	case isWeb(w.Data):
		return &File{Name: w.Name, URL: w.Data, MediaType: MediaPDF}, nil
	}
	media, data, err := parseDataURL(w.Data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("file_data: %w", err)
	case len(data) == 0:
		return nil, errors.New("file_data: it has no content")
	case strings.HasPrefix(media, "audio/"):
		return nil, errors.New("file_data: a recording is a part of type input_audio, with its data and format")
	}
	return &File{Name: w.Name, MediaType: media, Data: data}, nil
}

func (w *wireAudio) file() (*File, error) {
	f := &File{MediaType: "audio/" + w.Format, Data: w.Data, URL: w.URL}
	if w.Format == "" || f.place() != nil {
		return nil, errors.New("want data in base64 or a url, and format, which is wav or mp3")
	}
	return f, nil
}

// dataURL returns the address of some content: its URL, or the content as a data: URL.
func dataURL(url, media string, data []byte) string {
	if len(data) == 0 {
		return url
	}
	return "data:" + media + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// parseDataURL reads a data: URL.
func parseDataURL(url string) (media string, data []byte, err error) {
	rest, ok := strings.CutPrefix(url, "data:")
	media, coded, found := strings.Cut(rest, ";base64,")
	if !ok || !found {
		return "", nil, errors.New("content must be base64 in a data: URL, as data:application/pdf;base64,…")
	}
	data, err = base64.StdEncoding.DecodeString(coded)
	return media, data, err
}
