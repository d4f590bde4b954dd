package simhttp

import (
	"encoding/json"
	"net/http"
	"testing"
)

// fuzzEndpoint sends random bodies, and wants an answer or an error in JSON.
func fuzzEndpoint(f *testing.F, path string, seeds ...string) {
	f.Helper()
	s := newServer(f, Config{})
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) > 1<<16 {
			return
		}
		a := call(t, s, http.MethodPost, path, body, "Authorization", "Bearer x")
		stream := a.header.Get("Content-Type") != "application/json"
		if a.status != 200 && a.status != 400 && a.status != 404 || !stream && !json.Valid(a.body) {
			t.Fatalf("%d %s", a.status, a.body)
		}
		for _, e := range events(a.body) {
			if stream && string(e) != "[DONE]" && !json.Valid(e) {
				t.Fatalf("%s", e)
			}
		}
	})
}

func FuzzChat(f *testing.F) {
	fuzzEndpoint(f, chatPath, chatBody, with(chatBody, `"stream":true,"logprobs":true,"top_logprobs":3,"return_token_ids":true`),
		with(chatBody, `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"required"`),
		with(chatBody, `"response_format":{"type":"json_schema","json_schema":{"name":"o","schema":`+orderSchema+`}},"max_tokens":3,"stop":"a"`),
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjQK"}},{"type":"input_audio","input_audio":{"data":"UklGRiYAAABXQVZFZm10IBAAAAA=","format":"wav"}}]}]}`)
}

func FuzzResponses(f *testing.F) {
	fuzzEndpoint(f, responsesPath, responsesBody, with(responsesBody, `"stream":true,"include":["message.output_text.logprobs"]`),
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"x"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"y"}]}`)
}

func FuzzMessages(f *testing.F) {
	fuzzEndpoint(f, messagesPath, messagesBody, with(messagesBody, `"stream":true,"thinking":{"type":"adaptive"},"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]`),
		with(messagesBody, `"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}`))
}

func FuzzMessageBatch(f *testing.F) {
	fuzzEndpoint(f, "/v1/messages/batches", messageBatchBody(2), `{"requests":[{"custom_id":"a","params":{}}]}`)
}

func FuzzGemini(f *testing.F) {
	fuzzEndpoint(f, "/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"temperature":1,"thinkingConfig":{"thinkingLevel":"low"}}}`,
		`{"contents":[{"parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}`)
}

func FuzzBedrock(f *testing.F) {
	fuzzEndpoint(f, "/model/m/converse", `{"messages":[{"role":"user","content":[{"text":"hi"},{"cachePoint":{"type":"default"}}]}],"inferenceConfig":{"maxTokens":9}}`)
}
