package transport

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"parley/internal/ask/provider"
	"parley/llm"
)

// Misplaced adds the URL, and advice about the base URL, to the error of an unknown path. It does not
// change other errors.
func (a *Answer) Misplaced(e *llm.Error) {
	if e.Status != http.StatusNotFound && e.Status != http.StatusMethodNotAllowed || a.url == nil {
		return
	}
	if strings.Contains(strings.ToLower(e.Message+e.Code), "model") {
		return // the path is right: the model does not exist
	}
	at := *a.url
	at.RawQuery, at.Fragment = "", ""
	e.Message = fmt.Sprintf("%d from %s: %s%s", e.Status, at.Redacted(), e.Message, advice(&at))
}

// advice says what may be wrong with the base URL of a URL that was not found.
func advice(at *url.URL) string {
	path := at.Path
	switch {
	case strings.Contains(path, "/v1/v1/"):
		return "; base_url should end in one /v1"
	case provider.Unversioned(at.String()):
		return "; does base_url lack the /v1 at its end?"
	case strings.Count(path, "/chat/completions")+strings.Count(path, "/messages")+strings.Count(path, "/responses") > 1:
		return "; base_url is everything before the endpoint, and should end in /v1"
	default:
		return ""
	}
}
