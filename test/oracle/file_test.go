package oracle

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"parley/llm"
	"parley/llm/llmtest"
)

const paperURL = "https://example.com/a.pdf"

// fileSeen is what a client read of an answer to files.
type fileSeen struct {
	Text          string
	Input, Output int
	Audio         int
}

// TestSimFiles sends files with the SDKs to the simulated provider, and with our dialects. Both get the same answer, so they
// sent the same.
func TestSimFiles(t *testing.T) {
	bedrockEnv(t)
	url := startSim(t)
	pdf, wav := llm.Part{File: &llm.File{Name: "a b.pdf", MediaType: llm.MediaPDF, Data: []byte(llmtest.PDF)}}, llm.Part{File: &llm.File{MediaType: llm.MediaWAV, Data: []byte(llmtest.WAV)}}
	link := llm.Part{File: &llm.File{MediaType: llm.MediaPDF, URL: paperURL}}
	for name, c := range map[string]struct {
		sdk   func(*testing.T, string) fileSeen
		parts []llm.Part
		says  string
	}{
		"openai":    {chatFiles, []llm.Part{pdf, wav}, "1 document and 1 recording"},
		"responses": {responsesFiles, []llm.Part{pdf, link}, "2 documents and 0 recordings"},
		"anthropic": {messagesFiles, []llm.Part{pdf, link}, "2 documents and 0 recordings"},
		"gemini":    {geminiFiles, []llm.Part{pdf, wav, link}, "2 documents and 1 recording"},
		"bedrock":   {bedrockFiles, []llm.Part{pdf, wav}, "1 document and 1 recording"},
	} {
		theirs := c.sdk(t, url)
		req := &llm.Request{Model: "lab/m", MaxTokens: 300, Messages: []llm.Message{{Role: llm.RoleUser, Parts: append([]llm.Part{{Text: "See:"}}, c.parts...)}}}
		var r *llm.Response
		if name == "bedrock" {
			var err error
			if r, err = bedrockAsk(t, url, false, req); err != nil {
				t.Fatal(err)
			}
		} else {
			r = ask(t, name, url, false, req)
		}
		if got := (fileSeen{r.Text, r.Usage.Input, r.Usage.Output, r.Usage.Audio}); got != theirs || !strings.Contains(got.Text, c.says) {
			t.Errorf("%s: ours\n%+v, theirs\n%+v", name, got, theirs)
		}
	}
}

func coded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func chatFiles(t *testing.T, url string) fileSeen {
	cl := openaiClient(url, "k")
	r, err := cl.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "m", MaxCompletionTokens: openai.Int(300),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
			openai.TextContentPart("See:"),
			openai.FileContentPart(openai.ChatCompletionContentPartFileFileParam{Filename: openai.String("a b.pdf"), FileData: openai.String("data:application/pdf;base64," + coded(llmtest.PDF))}),
			openai.InputAudioContentPart(openai.ChatCompletionContentPartInputAudioInputAudioParam{Data: coded(llmtest.WAV), Format: "wav"}),
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Usage.PromptTokensDetails.AudioTokens == 0 {
		t.Error("the SDK reads no tokens of audio")
	}
	return fileSeen{r.Choices[0].Message.Content, int(r.Usage.PromptTokens), int(r.Usage.CompletionTokens), int(r.Usage.PromptTokensDetails.AudioTokens)}
}

func responsesFiles(t *testing.T, url string) fileSeen {
	cl := openaiClient(url, "k")
	r, err := cl.Responses.New(t.Context(), responses.ResponseNewParams{
		Model: "m", MaxOutputTokens: openai.Int(300),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(responses.ResponseInputMessageContentListParam{
			responses.ResponseInputContentParamOfInputText("See:"),
			{OfInputFile: &responses.ResponseInputFileParam{Filename: openai.String("a b.pdf"), FileData: openai.String("data:application/pdf;base64," + coded(llmtest.PDF))}},
			{OfInputFile: &responses.ResponseInputFileParam{FileURL: openai.String(paperURL)}},
		}, responses.EasyInputMessageRoleUser)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return fileSeen{r.OutputText(), int(r.Usage.InputTokens), int(r.Usage.OutputTokens), 0}
}

func messagesFiles(t *testing.T, url string) fileSeen {
	cl := anthropicClient(url, "k")
	pdf := anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{Data: coded(llmtest.PDF)})
	pdf.OfDocument.Title = anthropic.String("a b.pdf")
	r, err := cl.Messages.New(t.Context(), anthropic.MessageNewParams{
		Model: "m", MaxTokens: 300,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("See:"), pdf, anthropic.NewDocumentBlock(anthropic.URLPDFSourceParam{URL: paperURL}))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return fileSeen{r.Content[0].Text, int(r.Usage.InputTokens), int(r.Usage.OutputTokens), 0}
}

func geminiFiles(t *testing.T, url string) fileSeen {
	r, err := geminiClient(t, url).Models.GenerateContent(t.Context(), "m", []*genai.Content{genai.NewContentFromParts([]*genai.Part{
		genai.NewPartFromText("See:"), genai.NewPartFromBytes([]byte(llmtest.PDF), "application/pdf"),
		genai.NewPartFromBytes([]byte(llmtest.WAV), "audio/wav"), genai.NewPartFromURI(paperURL, "application/pdf"),
	}, genai.RoleUser)}, &genai.GenerateContentConfig{MaxOutputTokens: 300})
	if err != nil {
		t.Fatal(err)
	}
	u, audio := r.UsageMetadata, 0
	for _, d := range u.PromptTokensDetails {
		if d.Modality == genai.MediaModalityAudio {
			audio += int(d.TokenCount)
		}
	}
	if audio == 0 {
		t.Error("the SDK reads no tokens of audio")
	}
	return fileSeen{r.Text(), int(u.PromptTokenCount), int(u.CandidatesTokenCount), audio}
}

func bedrockFiles(t *testing.T, url string) fileSeen {
	r, err := bedrockClient(url).Converse(t.Context(), &bedrockruntime.ConverseInput{
		ModelId: aws.String("m"), InferenceConfig: &types.InferenceConfiguration{MaxTokens: aws.Int32(300)},
		Messages: []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{
			&types.ContentBlockMemberText{Value: "See:"},
			&types.ContentBlockMemberDocument{Value: types.DocumentBlock{Name: aws.String("a b"), Format: types.DocumentFormatPdf, Source: &types.DocumentSourceMemberBytes{Value: []byte(llmtest.PDF)}}},
			&types.ContentBlockMemberAudio{Value: types.AudioBlock{Format: types.AudioFormatWav, Source: &types.AudioSourceMemberBytes{Value: []byte(llmtest.WAV)}}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	text := r.Output.(*types.ConverseOutputMemberMessage).Value.Content[0].(*types.ContentBlockMemberText).Value
	return fileSeen{text, int(*r.Usage.InputTokens), int(*r.Usage.OutputTokens), 0}
}
