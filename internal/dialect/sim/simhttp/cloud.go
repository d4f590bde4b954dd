package simhttp

import (
	"net/http"

	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/cloud"
	"parley/internal/dialect/sim/simhttp/endpoint"
)

// cloudRoutes adds the paths at which Azure, AWS and Google serve models.
func (s *Server) cloudRoutes(handle func(pattern string, style quota.Style, e endpoint.Func)) {
	for path, f := range map[string]*format{
		"/openai/v1/chat/completions":                  &s.formats.chat,
		"/openai/v1/responses":                         &s.formats.responses,
		"/openai/deployments/{model}/chat/completions": &s.formats.deployed,
		"/openai/responses":                            &s.formats.versioned,
	} {
		answer := s.answer(f)
		handle("POST "+path, quota.OpenAI, func(w http.ResponseWriter, r *http.Request) *endpoint.Error {
			if err := answer(w, r); err != nil {
				return cloud.AzureError(err, r)
			}
			return nil
		})
	}
	handle("GET /openai/v1/models", quota.OpenAI, endpoint.OpenAIModels)
	handle("GET /openai/models", quota.OpenAI, cloud.Versioned(endpoint.OpenAIModels))
	s.batches.OpenAIRoutes("/openai/v1", func(pattern string, style quota.Style, e endpoint.Func) { handle(pattern, style, cloud.AzureBatch(e)) })
	s.batches.OpenAIRoutes("/openai", func(pattern string, style quota.Style, e endpoint.Func) {
		handle(pattern, style, cloud.Versioned(cloud.AzureBatch(e)))
	})

	handle("POST /model/{model}/converse", quota.Amazon, s.answer(&s.formats.bedrock))
	handle("POST /model/{model}/converse-stream", quota.Amazon, s.answer(&s.formats.bedrock))
	handle("GET /foundation-models", quota.Amazon, endpoint.BedrockModels)
	handle("GET /inference-profiles", quota.Amazon, endpoint.BedrockProfiles)

	const models = "POST /v1/projects/{project}/locations/{location}/publishers/"
	handle(models+"google/models/{call}", quota.Google, s.answer(&s.formats.vertexGemini))
	answer := s.answer(&s.formats.vertex)
	handle(models+"anthropic/models/{call}", quota.Google, func(w http.ResponseWriter, r *http.Request) *endpoint.Error {
		err := answer(w, r)
		switch {
		case err == nil:
		case err.Refusal != nil:
			return endpoint.TooMany(quota.Google, err.Refusal)
		case err.Status == http.StatusBadRequest: // Anthropic's own words
			s.fail(w, quota.Anthropic, err, s.requestID())
			return nil
		}
		return err
	})
}
