package provider

import (
	"cmp"
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

// Misfit says which file of a request cannot be sent to its model in a dialect, and why. It returns "" if there is none.
func (c Capability) Misfit(dialect string, req *llm.Request) string {
	for i := range req.Messages {
		m := &req.Messages[i]
		for k := range m.Parts {
			f := m.Parts[k].File
			if f == nil {
				continue
			}
			if why := cmp.Or(c.Unfit(dialect, f), misplaced(dialect, m, f)); why != "" {
				return fmt.Sprintf("messages[%d].content[%d], %v, cannot be sent to %s: %s", i, k, f, req.Model, why)
			}
		}
	}
	return ""
}

// Misfit does the same for a model of p.
func (p Provider) Misfit(req *llm.Request) string {
	_, model := llm.SplitModel(req.Model)
	return p.Capability(model).Misfit(p.Dialect, req)
}

// misplaced says why a file cannot be in a message.
func misplaced(dialect string, m *llm.Message, f *llm.File) string {
	switch {
	case dialect == "sim" || dialect == "go":
		return "" // no format says where files may be
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
