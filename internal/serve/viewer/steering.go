// Part steering is the form with which a person steers a run that is played: what it asks for,
// and what that does.
//
// It renders no page: package viewer does.

package viewer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"parley/internal/run/control"
	"parley/journal"
)

// Form is a request to steer a run, which a person must confirm.
type Form struct {
	To, Back string // where it is sent to, and the page of the run
	Verb     journal.SteerVerb
	Effect   string
	Sets     []string
	Problem  string // why the run was not steered
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

// readSteering reads the form of a request. It fails if there is no such verb.
func readSteering(req *http.Request) (f Form, err error) {
	f.Verb = journal.SteerVerb(req.FormValue("verb"))
	for _, name := range []string{"budget", "concurrency"} {
		if value := strings.TrimSpace(req.FormValue(name)); value != "" {
			f.Sets = append(f.Sets, name+"="+value)
		}
	}
	f.Sets = append(f.Sets, req.Form["set"]...)
	if f.Effect = effect(f.Verb); f.Effect == "" {
		err = fmt.Errorf("steering: unknown verb %q", f.Verb)
	}
	return f, err
}

// steeringPatience is how long a run has to answer.
const steeringPatience = 10 * time.Second

// Send steers the run file at path. It returns false and sets Problem if the run was not steered.
func (f *Form) Send(ctx context.Context, path string) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, steeringPatience, errors.New("the process that plays the run does not answer"))
	defer cancel()
	if _, err := control.Steer(ctx, path, control.Request{Verb: f.Verb, By: "view", Sets: f.Sets}); err != nil {
		f.Problem = err.Error()
		return false
	}
	return true
}
