package simhttp

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// mediaFault is why a part is refused: OpenAI's code, the place of the value, and the message. The zero value is none.
type mediaFault struct{ Code, At, Message string }

// mediaOpenAI checks a part of chat completions or responses.
func mediaOpenAI(at string, p []byte) mediaFault {
	part, ok := request.Part(p)
	kind, format := request.Str(p, "type"), request.Str(request.Member(p, "input_audio"), "format")
	switch {
	case kind == "file" && ok && part.File.URL != "":
	case ok && (part.File == nil || part.File.Check() == nil):
		return mediaFault{}
	case kind == "input_audio" && !slices.Contains([]string{"wav", "mp3"}, format):
		return mediaFault{"invalid_value", at + ".input_audio.format", fmt.Sprintf("Invalid value: '%s'. Supported values are: 'wav' and 'mp3'.", format)}
	case kind == "input_audio":
		return mediaFault{"invalid_value", at + ".input_audio.data", "The data provided for 'input_audio' is not of valid " + format + " format."}
	case kind != "file" && kind != "input_file":
		return mediaFault{"invalid_image_url", at + ".image_url", "Invalid image URL."}
	}
	return mediaFault{"invalid_value", at + ".file_data", fmt.Sprintf(
		"Invalid file data: '%s.file_data'. Expected a base64-encoded data URL with an application/pdf MIME type (e.g. 'data:application/pdf;base64,aW1nIGJ5dGVzIGhlcmU=').", at)}
}

// mediaAnthropic checks a block of the type image or document. It returns "" if nothing is wrong.
func mediaAnthropic(at string, b []byte) string {
	s, block := request.Member(b, "source"), request.Str(b, "type")
	kind := request.Str(s, "type")
	if kind != "url" && kind != "base64" {
		return fmt.Sprintf("%s.%s.source: Input tag '%s' found using 'type' does not match any of the expected tags: 'base64', 'url'", at, block, kind)
	}
	p, ok := request.Part(b)
	switch {
	case block == "document" && kind == "base64" && request.Str(s, "media_type") != llm.MediaPDF:
		return at + ".document.source.base64.media_type: Input should be 'application/pdf'"
	case !ok:
		return fmt.Sprintf("%s.%s.source.base64: invalid base64 data", at, block)
	case p.File != nil && p.File.Check() != nil:
		return at + ".pdf.source.base64.data: The PDF specified was not valid."
	}
	return ""
}

// mediaGemini checks the inlineData of a part, which may be nil. It returns "" if nothing is wrong.
func mediaGemini(v []byte) string {
	media := request.Str(v, "mimeType")
	f, known := request.FileOf(media, "", request.Str(v, "data"))
	switch {
	case known && !f.IsAudio() && f.Check() != nil:
		return "The document has no pages."
	case known && f.Check() != nil:
		return "Request contains an invalid argument."
	case v != nil && !known && !strings.HasPrefix(media, "image/"):
		return "Unsupported MIME type: " + media
	}
	return ""
}

// documentName is what the name of a document may be at Bedrock.
var documentName = regexp.MustCompile(`^[a-zA-Z0-9\-()\[\]]+( [a-zA-Z0-9\-()\[\]]+)*$`)

// mediaBedrock checks the documents in the content of a message, and adds their names to those of earlier messages. It returns "" if nothing
// is wrong.
func mediaBedrock(at string, content []byte, names map[string]bool) (why string) {
	texts, documents := 0, 0
	body.Elements(content, func(p []byte) bool {
		if request.Str(p, "text") != "" {
			texts++
		}
		d := request.Member(p, "document")
		if d == nil {
			return true
		}
		documents++
		f, ok := request.FileOf("application/"+request.Str(d, "format"), "", request.Str(request.Member(d, "source"), "bytes"))
		name := request.Str(d, "name")
		known := names[strings.ToLower(name)]
		names[strings.ToLower(name)] = true
		switch {
		case known:
			why = "Messages can't contain duplicate document names. Rename the documents and try your request again."
		case !documentName.MatchString(name) || len(name) > 200:
			why = fmt.Sprintf("The document file name '%s' can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets. The name can't contain more than one consecutive whitespace character.", name)
		case !ok || f.Check() != nil:
			why = "The model returned the following errors: " + at + ": The PDF specified was not valid."
		}
		return why == ""
	})
	if why == "" && documents > 0 && texts == 0 {
		why = at + ": a text block is required when a document is included."
	}
	return why
}
