package credential

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"parley/llm"
)

const (
	googleScope   = "https://www.googleapis.com/auth/cloud-platform"
	googleTimeout = time.Minute

	fileVariable    = "GOOGLE_APPLICATION_CREDENTIALS"
	projectVariable = "GOOGLE_CLOUD_QUOTA_PROJECT"
	programVariable = "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES"
)

// Token is an access token.
type Token struct {
	Value   string
	Expires time.Time // zero: not known
	// Project is the project that the calls of a user are counted for, or "". It is sent in the header X-Goog-User-Project.
	Project string
}

// googleFile is what is read in a file of credentials here. Google's library reads the rest.
type googleFile struct {
	Project string `json:"quota_project_id"`
	Source  struct {
		Program json.RawMessage `json:"executable"`
	} `json:"credential_source"`
}

var errGoogleSlow = errors.New("it took too long")

// googleResult is what a search for a token gives.
type googleResult struct {
	token     Token
	err       error
	unreached error // the last failure to reach a server
}

// findGoogle returns a new token with Google's Application Default Credentials: the file that GOOGLE_APPLICATION_CREDENTIALS
// names, that of gcloud, or the metadata server of the machine. The file may be a user's or a service account's, or one of
// workload identity federation. Google's library finds and reads them, again for each token.
//
// An error is an *llm.Error, or that of ctx. Nothing of a file, and nothing that a token server or a program printed, is in it,
// except the short code of OAuth. A program that a file names runs only if the user allowed that with
// GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES.
func findGoogle(ctx context.Context) (Token, error) {
	inner, cancel := context.WithTimeoutCause(ctx, googleTimeout, errGoogleSlow)
	defer cancel()
	done := make(chan googleResult, 1)
	go func() { done <- searchGoogle(inner) }() // the library asks the metadata server without a context
	var f googleResult
	select {
	case f = <-done:
	case <-inner.Done():
		f.err = context.Cause(inner)
	}
	switch {
	case f.err == nil:
		return f.token, nil
	case ctx.Err() != nil:
		return Token{}, context.Cause(ctx)
	case inner.Err() != nil:
		f.unreached = errGoogleSlow
	}
	if f.unreached != nil {
		return Token{}, &llm.Error{Kind: llm.KindTransport, Unreachable: true, Message: "the server of Google's tokens cannot be reached: " + f.unreached.Error()}
	}
	return Token{}, &llm.Error{Kind: llm.KindAuth, Message: f.err.Error()}
}

// searchGoogle is find with a client that remembers whether a server was reached.
func searchGoogle(ctx context.Context) (f googleResult) {
	way := http.DefaultTransport.(*http.Transport).Clone()
	way.DisableKeepAlives = true // a token lasts an hour
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: send(func(r *http.Request) (*http.Response, error) {
			res, err := way.RoundTrip(r.WithContext(ctx)) // the library does not always pass it on
			if err != nil {
				f.unreached = err
			}
			return res, err
		}),
	}
	f.token, f.err = find(context.WithValue(ctx, oauth2.HTTPClient, client))
	return f
}

// send is an http.RoundTripper.
type send func(*http.Request) (*http.Response, error)

func (s send) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

// find asks the library. Its errors hold nothing of what the library says.
func find(ctx context.Context) (Token, error) {
	found, err := google.FindDefaultCredentials(ctx, googleScope)
	if err != nil {
		return Token{}, missing()
	}
	var read googleFile
	if json.Unmarshal(found.JSON, &read) != nil {
		read = googleFile{} // the metadata server needs no file
	}
	t, err := found.TokenSource.Token()
	if err != nil {
		return Token{}, refused(err, len(found.JSON) > 0, &read)
	}
	return Token{Value: t.AccessToken, Expires: t.Expiry, Project: cmp.Or(os.Getenv(projectVariable), read.Project)}, nil
}

// missing says that there are no credentials, or that their file cannot be read.
func missing() error {
	const other = "or name a program that prints a token with key_command, as [gcloud, auth, print-access-token]"
	name := os.Getenv(fileVariable)
	if name == "" {
		return fmt.Errorf("credentials of Google are not found: run gcloud auth application-default login, set %s to a file of credentials, %s", fileVariable, other)
	}
	if _, err := os.Stat(name); err != nil {
		return fmt.Errorf("the file that %s names cannot be read: correct the variable, %s", fileVariable, other)
	}
	return fmt.Errorf("the file that %s names is no file of Google credentials that is known: correct the variable, %s", fileVariable, other)
}

// code is a code of OAuth, such as invalid_grant.
var code = regexp.MustCompile(`^[a-z_]{1,40}$`)

// refused says that credentials gave no token.
func refused(err error, hasFile bool, read *googleFile) error {
	from := "the metadata server of this machine"
	switch {
	case os.Getenv(fileVariable) != "":
		from = "the file that " + fileVariable + " names"
	case hasFile:
		from = "the file of gcloud auth application-default login"
	}
	if len(read.Source.Program) > 0 && os.Getenv(programVariable) != "1" {
		return fmt.Errorf("%s has a program run for each token, which you have not allowed: set %s to 1 if you trust it", from, programVariable)
	}
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		var body struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(answer.Body, &body) == nil && code.MatchString(body.Error) {
			return fmt.Errorf("%s gives no token: Google refuses its credentials (%s). They may have expired: gcloud auth application-default login renews those of a user", from, body.Error)
		}
	}
	return fmt.Errorf("%s gives no token: gcloud auth application-default print-access-token says what is wrong", from)
}
