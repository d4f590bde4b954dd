package viewer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/internal/control"
	"parley/journal"
)

// steerForm is a request to steer a run, which a person must confirm.
type steerForm struct {
	To      string // where the form is sent to
	Back    string
	Verb    journal.SteerVerb
	Effect  string
	Sets    []string
	Problem string // why the run was not steered
}

// effect says what a verb does; empty: there is no such verb.
func effect(verb journal.SteerVerb) string {
	switch verb {
	case journal.SteerPause:
		return "No calls are sent until the run is resumed. Calls in flight are finished and recorded."
	case journal.SteerResume:
		return "The run sends calls again."
	case journal.SteerDrain:
		return "Episodes that have begun are played to their end, and no more begin. Then the run stops; parley resume continues it."
	case journal.SteerStop:
		return "No more calls are sent. Calls in flight are finished and recorded, and the run stops; parley resume continues it."
	case journal.SteerSet:
		return "The run continues with these settings. They are recorded in its file."
	default:
		return ""
	}
}

// settings are the fields of a form that are set.
func settings(req *http.Request) (sets []string) {
	for _, name := range []string{"budget", "concurrency"} {
		if value := strings.TrimSpace(req.FormValue(name)); value != "" {
			sets = append(sets, name+"="+value)
		}
	}
	return append(sets, req.Form["set"]...)
}

// steer asks a person to confirm that a run is steered. A POST request is the confirmation.
func (v *Viewer) steer(req *http.Request) (*screen, error) {
	req.Body = http.MaxBytesReader(nil, req.Body, maxForm)
	r, p, err := v.open(req, "")
	if err != nil {
		return nil, err
	}
	f := steerForm{To: runPath(r.Name, "steer"), Back: runPath(r.Name), Verb: journal.SteerVerb(req.FormValue("verb")), Sets: settings(req)}
	if f.Effect = effect(f.Verb); f.Effect == "" {
		return nil, fmt.Errorf("%w: unknown verb %q", errBadRequest, f.Verb)
	}
	p.template, p.Title, p.Live, p.Data = "steer", "Steer "+r.Name, "", &f
	if req.Method != http.MethodPost {
		return p, nil
	}
	ctx, cancel := context.WithTimeoutCause(req.Context(), steerTime, errors.New("the process that plays the run does not answer"))
	defer cancel()
	_, err = control.Steer(ctx, r.Path, control.Request{Verb: f.Verb, By: "view", Sets: slices.Clip(f.Sets)})
	if err == nil {
		return &screen{to: f.Back}, nil
	}
	p.status, f.Problem = http.StatusConflict, err.Error()
	return p, nil
}

// steerTime is how long a run has to answer.
const steerTime = 10 * time.Second
