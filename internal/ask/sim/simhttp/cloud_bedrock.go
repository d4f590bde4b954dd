package simhttp

import (
	"net/http"
	"strings"
)

// bedrockAddress reads the model, and whether to stream.
func bedrockAddress(r *http.Request, a *Ask) *Error {
	if r.Header.Get("Authorization") == "" {
		return &Error{Status: http.StatusForbidden, Message: "Missing Authentication Token"}
	}
	a.Request.Model, a.Stream = r.PathValue("model"), strings.HasSuffix(r.URL.Path, "/converse-stream")
	return nil
}
