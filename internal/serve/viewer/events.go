package viewer

import (
	"io"
	"net/http"
	"time"

	"parley/internal/kit/sse"
	"parley/internal/read/report"
)

// heartbeat is how often an event stream says that it is alive, so that a browser that is gone is noticed.
const heartbeat = 15 * time.Second

// events returns a handler that tells a page whenever its run has grown, and not what it has become: the page fetches
// that.
func events(open func(*http.Request) (*Run, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		r, err := open(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		follow(w, req, r)
	}
}

func follow(w http.ResponseWriter, req *http.Request, r *Run) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	secure(h)
	changed, end := r.Watch()
	defer end()
	control := http.NewResponseController(w)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		err := control.Flush()
		if err != nil {
			return
		}
		select {
		case <-req.Context().Done():
			return
		case <-r.Gone(): // the browser asks again, and gets the events of a file that took its place
			return
		case <-changed:
			_, err = w.Write(sse.End(append(sse.Begin(nil, "grown"), '1')))
		case <-beat.C:
			_, err = io.WriteString(w, ": alive\n\n")
		}
		if err != nil {
			return
		}
	}
}

// allEvents tells the list of runs that one of them was changed, added or removed.
func (v *Viewer) allEvents(w http.ResponseWriter, req *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	secure(h)
	control := http.NewResponseController(w)
	last := v.runs.Stamp()
	beat := time.NewTicker(listTick)
	defer beat.Stop()
	for {
		if err := control.Flush(); err != nil {
			return
		}
		select {
		case <-req.Context().Done():
			return
		case <-beat.C:
		}
		text := []byte(": alive\n\n")
		if now := v.runs.Stamp(); now != last {
			last, text = now, sse.End(append(sse.Begin(nil, "grown"), '0'))
		}
		if _, err := w.Write(text); err != nil {
			return
		}
	}
}

// listTick is how often the files of the list are looked at.
const listTick = 2 * time.Second

// reportEpisodes and reportTranscripts limit a report, as parley report does.
const (
	reportEpisodes    = 1000
	reportTranscripts = 20
)

// report serves the report of a run as parley report writes it.
func (v *Viewer) report(w http.ResponseWriter, req *http.Request) {
	r, err := v.get(req.Context(), req.PathValue("run"))
	if err != nil {
		v.render(failure(err))(w)
		return
	}
	d, err := build(req.Context(), r, report.Options{Tool: v.cfg.Tool, Episodes: reportEpisodes, Transcripts: reportTranscripts})
	if err != nil {
		v.render(failure(err))(w)
		return
	}
	d.Back = runPath(r.Name)
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8") // its content security policy is in the page
	h.Set("Cache-Control", "no-store")
	secure(h)
	_ = d.WriteHTML(w) // the browser is gone
}
