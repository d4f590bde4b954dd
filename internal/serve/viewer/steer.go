package viewer

import (
	"fmt"
	"net/http"
)

// steer asks a person to confirm that a run is steered. A POST request is the confirmation.
func (v *Viewer) steer(req *http.Request) (*screen, error) {
	req.Body = http.MaxBytesReader(nil, req.Body, maxForm)
	r, p, err := v.open(req, "")
	if err != nil {
		return nil, err
	}
	f, err := readSteering(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadRequest, err)
	}
	f.To, f.Back = runPath(r.Name, "steer"), runPath(r.Name)
	p.template, p.Title, p.Live, p.Data = "steer", "Steer "+r.Name, "", &f
	if req.Method == http.MethodPost {
		done := false
		v.slots.without(func() { done = f.Send(req.Context(), r.Path) })
		if done {
			return &screen{to: f.Back}, nil
		}
	}
	if f.Problem != "" {
		p.status = http.StatusConflict
	}
	return p, nil
}
