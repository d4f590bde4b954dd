package simhttp

import "net/http"

// endpointIndex is the page that says what is served.
func endpointIndex(w http.ResponseWriter, _ *http.Request) {
	writeBody(w, http.StatusOK, "text/plain; charset=utf-8", []byte(`This is parley sim, a simulated provider of language models.

OpenAI's format:    POST /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/files, /v1/batches; GET /v1/models
Anthropic's format: POST /v1/messages, /v1/messages/count_tokens, /v1/messages/batches
Azure's paths:      POST /openai/v1/chat/completions, /openai/v1/responses, /openai/deployments/NAME/chat/completions?api-version=VERSION, /openai/responses?api-version=VERSION
Vertex AI's paths:  POST /v1/projects/PROJECT/locations/REGION/publishers/google/models/MODEL:generateContent, …/publishers/anthropic/models/MODEL:rawPredict and their streams
Bedrock's format:   POST /model/MODEL/converse, /model/MODEL/converse-stream; GET /foundation-models, /inference-profiles
Gemini's format:    POST /v1beta/models/MODEL:generateContent, :streamGenerateContent?alt=sse, :batchGenerateContent; GET /v1beta/batches, /v1beta/models
Batches as at:      /mistral/v1, /together/v1, /xai/v1, each with /chat/completions
As in engines:      the above below /v1/SESSION or /v1/sessions/SESSION too, and POST …/close; POST /update_weight_version with {"new_version": "2"}; GET /metrics
What happened:      GET /stats

Any model name works. Answers depend on the request and the seed only.
`))
}
