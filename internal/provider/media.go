package provider

import (
	"fmt"

	"parley/llm"
)

// maxBedrockBytes is how large a document of Bedrock's Converse API may be: 4.5 MB, as AWS documents.
const maxBedrockBytes = 4_500_000

// Unfit says why a model that is asked in a dialect cannot take a file, and what to do about it. It returns "" if it can,
// or if nothing is known against it. What the formats hold is from the vendors' references and SDKs of November 2026: chat
// completions take PDFs and recordings as content, responses take PDFs by content or address, messages of Anthropic too,
// Gemini takes everything, and Bedrock only content.
func (c Capability) Unfit(dialect string, f *llm.File) string {
	if err := f.Check(); err != nil {
		return err.Error()
	}
	link := len(f.Data) == 0
	switch {
	case f.IsAudio() && (c.NoAudio || dialect == "anthropic" || dialect == "responses"):
		return "the model takes no audio: send a transcript as text, or ask one that does, such as gemini/gemini-2.5-flash or openai/gpt-audio"
	case !f.IsAudio() && c.NoDocuments:
		return "the model takes no PDFs: send its text, or its pages as images, or ask one that does, such as gemini/gemini-2.5-flash"
	case link && f.IsAudio() && dialect != "gemini" && dialect != "sim":
		return "audio is taken only by content: give its data instead of its address"
	case link && (dialect == "openai" && !c.FileLinks || dialect == "bedrock"):
		return "a PDF is taken only by content: give it as a data: URL instead of its address"
	case dialect == "bedrock" && len(f.Data) > maxBedrockBytes && !f.IsAudio():
		return fmt.Sprintf("Bedrock takes documents of at most %d bytes: split it", maxBedrockBytes)
	}
	return ""
}
