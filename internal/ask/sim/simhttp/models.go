package simhttp

import "net/http"

// listed are the models that are listed. Any other name works too.
func listed() []string { return []string{"small", "large", "echo"} }

// openAIModels answers GET /v1/models.
func openAIModels(w http.ResponseWriter, _ *http.Request) *Error {
	var list []map[string]any
	for _, name := range listed() {
		list = append(list, map[string]any{"id": "sim/" + name, "object": "model", "created": 1_700_000_000, "owned_by": "sim"})
	}
	writeJSON(w, map[string]any{"object": "list", "data": list})
	return nil
}

// geminiModels answers GET /v1beta/models.
func geminiModels(w http.ResponseWriter, _ *http.Request) *Error {
	var list []map[string]any
	for _, name := range listed() {
		list = append(list, map[string]any{
			"name": "models/" + name, "version": "1", "displayName": name, "inputTokenLimit": 1 << 20, "outputTokenLimit": 1 << 16,
			"supportedGenerationMethods": []string{"generateContent", "batchGenerateContent"},
		})
	}
	writeJSON(w, map[string]any{"models": list})
	return nil
}

// bedrockModels answers GET /foundation-models.
func bedrockModels(w http.ResponseWriter, _ *http.Request) *Error {
	var list []map[string]any
	for _, name := range listed() {
		list = append(list, map[string]any{
			"modelId": "sim." + name, "modelArn": "arn:aws:bedrock:us-east-1::foundation-model/sim." + name, "modelName": name, "providerName": "sim",
			"inputModalities": []string{"TEXT"}, "outputModalities": []string{"TEXT"}, "inferenceTypesSupported": []string{"ON_DEMAND"}, "responseStreamingSupported": true,
		})
	}
	writeJSON(w, map[string]any{"modelSummaries": list})
	return nil
}

// bedrockProfiles answers GET /inference-profiles.
func bedrockProfiles(w http.ResponseWriter, _ *http.Request) *Error {
	writeJSON(w, map[string]any{"inferenceProfileSummaries": []any{}})
	return nil
}
