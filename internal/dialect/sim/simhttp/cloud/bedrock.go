package cloud

import (
	"net/http"
	"strings"

	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/dialect/sim/simhttp/endpoint"
)

// BedrockAddress reads the model, and whether to stream.
func BedrockAddress(r *http.Request, a *check.Ask) *endpoint.Error {
	if r.Header.Get("Authorization") == "" {
		return &endpoint.Error{Status: http.StatusForbidden, Message: "Missing Authentication Token"}
	}
	a.Request.Model, a.Stream = r.PathValue("model"), strings.HasSuffix(r.URL.Path, "/converse-stream")
	return nil
}
