package simhttp

import (
	"net/http"

	"parley/internal/ask/sim"
)

// cloudRoutes adds the paths at which Azure, AWS and Google serve models.
func (s *Server) cloudRoutes(handle func(pattern string, style sim.Style, e Func)) {
	for path, f := range map[string]*format{
		"/openai/v1/chat/completions":                  &s.formats.chat,
		"/openai/v1/responses":                         &s.formats.responses,
		"/openai/deployments/{model}/chat/completions": &s.formats.deployed,
		"/openai/responses":                            &s.formats.versioned,
	} {
		answer := s.answer(f)
		handle("POST "+path, sim.OpenAI, func(w http.ResponseWriter, r *http.Request) *Error {
			if err := answer(w, r); err != nil {
				return azureError(err, r)
			}
			return nil
		})
	}
	handle("GET /openai/v1/models", sim.OpenAI, openAIModels)
	handle("GET /openai/models", sim.OpenAI, cloudVersioned(openAIModels))
	s.batches.OpenAIRoutes("/openai/v1", func(pattern string, style sim.Style, e Func) { handle(pattern, style, azureBatch(e)) })
	s.batches.OpenAIRoutes("/openai", func(pattern string, style sim.Style, e Func) {
		handle(pattern, style, cloudVersioned(azureBatch(e)))
	})

	handle("POST /model/{model}/converse", sim.Amazon, s.answer(&s.formats.bedrock))
	handle("POST /model/{model}/converse-stream", sim.Amazon, s.answer(&s.formats.bedrock))
	handle("GET /foundation-models", sim.Amazon, bedrockModels)
	handle("GET /inference-profiles", sim.Amazon, bedrockProfiles)

	const models = "POST /v1/projects/{project}/locations/{location}/publishers/"
	handle(models+"google/models/{call}", sim.Google, s.answer(&s.formats.vertexGemini))
	answer := s.answer(&s.formats.vertex)
	handle(models+"anthropic/models/{call}", sim.Google, func(w http.ResponseWriter, r *http.Request) *Error {
		err := answer(w, r)
		switch {
		case err == nil:
		case err.Refusal != nil:
			return tooMany(sim.Google, err.Refusal)
		case err.Status == http.StatusBadRequest: // Anthropic's own words
			s.fail(w, sim.Anthropic, err, s.requestID())
			return nil
		}
		return err
	})
}
