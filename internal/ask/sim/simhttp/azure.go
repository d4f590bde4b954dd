// Part cloud is what Azure, AWS and Google change about the formats of the simulated server: where the model and the version
// are, and how errors read.
//
// It promises nothing of its own. It does not answer: package simhttp does, with the formats of the vendors.

package simhttp

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// isAzure reports whether a request is for one of Azure's paths.
func isAzure(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/openai/") }

// azureAddress reads the deployment in the address, which counts instead of the model in the body.
func azureAddress(r *http.Request, a *Ask) *Error {
	if r.URL.Query().Get("api-version") == "" {
		return &Error{Status: http.StatusNotFound}
	}
	if model := r.PathValue("model"); model != "" {
		a.Request.Model = model
	}
	return nil
}

// cloudVersioned is an endpoint at one of Azure's older paths, which need a version.
func cloudVersioned(inner Func) Func {
	return func(w http.ResponseWriter, r *http.Request) *Error {
		if r.URL.Query().Get("api-version") == "" {
			return azureError(&Error{Status: http.StatusNotFound}, r)
		}
		return inner(w, r)
	}
}

// azureError writes an error as Azure does: its code is the status, and there is no type.
func azureError(e *Error, r *http.Request) *Error {
	out := *e
	switch e.Status {
	case http.StatusUnauthorized:
		out.Message = "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource."
	case http.StatusNotFound:
		out.Message = "Resource not found"
	case http.StatusTooManyRequests:
		if e.Refusal == nil {
			return e
		}
		version, what := r.URL.Query().Get("api-version"), "token"
		if version == "" {
			version = "v1"
		}
		if e.Refusal.What == "requests" {
			what = "call"
		}
		out.Message = fmt.Sprintf("Requests to the ChatCompletions_Create Operation under Azure OpenAI API version %s have exceeded %s rate limit of your current OpenAI S0 pricing tier. Please retry after %d seconds.",
			version, what, int(math.Ceil(e.Refusal.After.Seconds())))
	default:
		return e
	}
	out.Type, out.Code = "", strconv.Itoa(e.Status)
	return &out
}
