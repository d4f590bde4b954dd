package viewer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"parley/internal/run/label"
	"parley/internal/run/runfile"
)

// maxForm is how long the body of a form may be.
const maxForm = 1 << 16

// label adds a label to an episode or to a message of it, or removes one, as a form says. The guard of the server has
// checked that a page of this server sent the form.
func (v *Viewer) label(req *http.Request) (*screen, error) {
	r, _, err := v.open(req, "")
	if err != nil {
		return nil, err
	}
	l, err := find(r, req)
	if err != nil {
		return nil, err
	}
	req.Body = http.MaxBytesReader(nil, req.Body, maxForm)
	if err := req.ParseForm(); err != nil {
		return nil, fmt.Errorf("viewer: %w: it cannot be read: %w", errForm, err)
	}
	form := req.PostForm
	if form.Has("remove") {
		err = unlabel(req.Context(), r, l.Episode, form.Get("remove"))
	} else {
		err = addLabel(req.Context(), r, l, form)
	}
	if err != nil {
		return nil, err
	}
	if _, err := r.Labels(req.Context()); err != nil {
		return nil, err
	}
	to := runPath(r.Name, "episodes", strconv.Itoa(l.Episode))
	q := url.Values{}
	for _, name := range []string{"from", "text"} {
		if value := form.Get(name); value != "" {
			q.Set(name, value)
		}
	}
	if len(q) > 0 {
		to += "?" + q.Encode()
	}
	return &screen{to: to + "#labels"}, nil
}

// addLabel adds the label of a form to an episode.
func addLabel(ctx context.Context, r *Run, l *runfile.Listed, form url.Values) error {
	call := form.Get("call")
	if call != "" {
		if _, _, err := findReply(ctx, r, l, call); errors.Is(err, errNotFound) {
			return fmt.Errorf("viewer: %w: episode %d has no message %q", errForm, l.Episode, call)
		} else if err != nil {
			return err
		}
	}
	err := label.Add(r.Store.Path(), label.Label{
		Run: r.Begun.Run, Episode: l.Episode, Call: call, By: form.Get("by"),
		Tag: form.Get("tag"), Verdict: label.Verdict(form.Get("verdict")), Note: form.Get("note"),
	})
	if errors.Is(err, label.ErrInvalid) {
		err = fmt.Errorf("viewer: %w: %w", errForm, err)
	}
	return err
}

// unlabel removes a label of an episode. If there is none, somebody else may have removed it, and nothing is written.
func unlabel(ctx context.Context, r *Run, episode int, id string) error {
	set, err := r.Labels(ctx)
	if err != nil {
		return err
	}
	for _, given := range set.Of(episode) {
		if given.ID == id {
			return label.Remove(r.Store.Path(), given)
		}
	}
	return nil
}

// labelForm is what the form for labels needs.
type labelForm struct {
	To     string // where it is sent
	From   string // the window that the page shows
	Text   string // how it shows texts: see textsOf
	Call   string // the message that the form is about; empty: the episode
	Cancel string // the page without the message
	Tags   []string
	Given  []label.Label // of the episode
	Older  string        // the page with the labels before Shown; empty: there are none
	before int           // how many of Given are on this page or before it
}

// maxLabels is how many labels a page lists.
const maxLabels = 50

// Shown returns the labels that the page lists: the latest, or those before.
func (f labelForm) Shown() []label.Label { return f.Given[max(0, f.before-maxLabels):f.before] }

// Verdicts are the verdicts to choose from.
func (labelForm) Verdicts() []label.Verdict { return label.Verdicts() }

// newLabelForm returns the form of an episode whose page is at an address.
func newLabelForm(set *label.Set, episode int, at string, q url.Values, shown texts) labelForm {
	f := labelForm{To: at + "/labels", From: q.Get("from"), Text: q.Get("text"), Call: q.Get("label"), Cancel: at, Given: set.Of(episode)}
	f.Tags, _ = set.Tags()
	f.before = len(f.Given)
	if n, err := strconv.Atoi(q.Get("labels")); err == nil && n > 0 {
		f.before = min(n, f.before)
	}
	if rest := f.before - maxLabels; rest > 0 {
		f.Older = fmt.Sprintf("%s?labels=%d#labels", at, rest)
	}
	if strings.Trim(f.Call, "0123456789./:") != "" {
		f.Call = "" // it is no call
	}
	if _, err := placeOf(f.From); err != nil {
		f.From = ""
	}
	if f.From != "" {
		f.Cancel += "?from=" + url.QueryEscape(f.From)
	}
	f.Cancel, f.Older = shown.keep(f.Cancel), shown.keep(f.Older)
	return f
}
