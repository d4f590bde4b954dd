package viewer

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/kit/auth"
	"parley/internal/kit/files"
	"parley/internal/read/chart"
	"parley/internal/run/control"
	"parley/internal/run/seat"
	"parley/journal"
	"parley/world"
)

// The page of a seat is for a person who takes part in a run: what the seat was told, its question, and a form for
// the answer.
//
// A seat has its own key, so that its page can be given to a person who may see nothing else. The key is exchanged for a
// cookie that is valid for the pages of that seat only. Keys are derived from a random secret in the file RUN-keys
// beside the run, which only its user can read, so links outlast the viewer.

// errNoSeat means that there is no such seat, or that a request may not see it.
var errNoSeat = errors.New("there is no such seat")

// seatOf returns the run and the seat of an address of a seat: its page or its events.
func seatOf(path string) (run, seat string, ok bool) {
	steps := strings.Split(path, "/")
	if len(steps) == 6 && steps[5] == "events" {
		steps = steps[:5]
	}
	if len(steps) != 5 || steps[0] != "" || steps[1] != "run" || steps[3] != "seats" {
		return "", "", false
	}
	run, err := url.PathUnescape(steps[2])
	if err != nil {
		return "", "", false
	}
	seat, err = url.PathUnescape(steps[4])
	return run, seat, err == nil && seat != ""
}

// isSeatPage reports whether a path is that of a page of a seat.
func isSeatPage(path string) bool {
	_, _, ok := seatOf(path)
	return ok
}

// seatCookie returns the name of the cookie of a seat.
func seatCookie(r *http.Request) string { return cookieName(r) + "-seat" }

// isGuest reports whether a request is for a page of a seat and has the cookie of that seat.
func (v *Viewer) isGuest(r *http.Request) bool {
	run, name, ok := seatOf(r.URL.EscapedPath())
	return ok && v.hasSeatCookie(r, run, name)
}

// hasSeatCookie reports whether a request has the cookie of a seat.
func (v *Viewer) hasSeatCookie(r *http.Request, run, name string) bool {
	c, err := r.Cookie(seatCookie(r))
	if err != nil {
		return false
	}
	s, ok := v.seatSecret(r.Context(), run)
	return ok && equalKeys(c.Value, s.token(name))
}

// seatSecret returns the secret of a run. It opens no run and writes nothing: anybody can ask.
func (v *Viewer) seatSecret(ctx context.Context, run string) (seatSecret, bool) {
	path, ok := v.runs.File(run)
	if !ok {
		return seatSecret{}, false
	}
	return v.secrets.find(ctx, path, false)
}

// signInSeat exchanges the key of a seat for the cookie of its pages, which are below page. It reports whether the key is
// right.
func (v *Viewer) signInSeat(w http.ResponseWriter, r *http.Request, page, key string) bool {
	run, name, ok := seatOf(page)
	if !ok {
		return false
	}
	s, ok := v.seatSecret(r.Context(), run)
	if !ok || !equalKeys(key, s.key(name)) {
		return false
	}
	http.SetCookie(w, &http.Cookie{Name: seatCookie(r), Value: s.token(name), Path: runPath(run, "seats", name), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: auth.Encrypted(r)}) //nolint:gosec // the server speaks HTTP on the loopback interface
	return true
}

// openSeat returns the run and the seat of a request.
func (v *Viewer) openSeat(req *http.Request) (r *Run, name string, err error) {
	name = req.PathValue("seat")
	owner := v.owner(req)
	if !owner && !v.hasSeatCookie(req, req.PathValue("run"), name) { // the guard of the server has checked it too
		return nil, "", errNoSeat
	}
	r, err = v.get(req.Context(), req.PathValue("run"))
	if err != nil || !owner { // only links to seats that exist have keys
		return r, name, err
	}
	places, err := seat.Places(req.Context(), r.Store, r.Begun)
	if err == nil && !slices.ContainsFunc(places, func(p seat.Place) bool { return p.Seat == name }) {
		err = errNoSeat
	}
	return r, name, err
}

// seat is the page of a seat. It has no links to other pages of the run.
func (v *Viewer) seat(req *http.Request) (*screen, error) {
	r, name, err := v.openSeat(req)
	if err != nil {
		return nil, err
	}
	data, err := readSeatPage(req.Context(), r, name)
	if err != nil {
		return nil, err
	}
	p := &screen{template: "seat", Title: "Seat " + name, Style: data.Style, Data: data}
	if !data.Ended {
		p.Live = runPath(r.Name, "seats", name, "events")
	}
	return p, nil
}

// maxSeatForm is how large a filled-in form may be, and sendTime how long the process that plays the run may take to accept
// an answer.
const (
	maxSeatForm = 4 * seat.MaxAnswer
	sendTime    = 10 * time.Second
)

// answerSeat takes the form of a seat.
func (v *Viewer) answerSeat(req *http.Request) (*screen, error) {
	r, name, err := v.openSeat(req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), sendTime)
	defer cancel()
	body, err := io.ReadAll(io.LimitReader(req.Body, maxSeatForm+1))
	if err != nil {
		return nil, err
	}
	filled, err := url.ParseQuery(string(body))
	if len(body) > maxSeatForm || err != nil {
		filled = url.Values{} // it answers nothing
	}
	data, err := v.sendAnswer(ctx, r, name, filled)
	if err != nil {
		return nil, err
	}
	if data == nil {
		r.Tell()
		return &screen{to: runPath(r.Name, "seats", name)}, nil
	}
	if len(body) > maxSeatForm {
		data.Problem = "Your answer is too long: shorten it."
	}
	// It does not follow the run: what was filled in stays.
	return &screen{status: http.StatusUnprocessableEntity, template: "seat", Title: "Seat " + name, Style: data.Style, Data: data}, nil
}

// seatRun returns the run of a page of a seat.
func (v *Viewer) seatRun(req *http.Request) (*Run, error) {
	r, _, err := v.openSeat(req)
	return r, err
}

// seatList is the data of the page with the links of all seats.
type seatList struct {
	Links []seatLink
	Lost  string // why the links end with the viewer; empty: they do not
}

// seatLink is a seat in the list of seats.
type seatLink struct {
	seat.Place
	Open int
	To   string
}

// seatLinks is the page with the links of all seats, for the owner of the run.
func (v *Viewer) seatLinks(req *http.Request) (*screen, error) {
	r, p, err := v.open(req, "Seats")
	if err != nil {
		return nil, err
	}
	places, err := seat.Places(req.Context(), r.Store, r.Begun)
	if err != nil {
		return nil, err
	}
	open, err := seat.Read(req.Context(), r.Path)
	if err != nil {
		return nil, err
	}
	s, _ := v.secrets.find(req.Context(), r.Path, true)
	var all seatList
	if s.lost != nil {
		all.Lost = s.lost.Error()
	}
	for _, place := range places {
		l := seatLink{Place: place, To: runPath(r.Name, "seats", place.Seat) + "#key=" + s.key(place.Seat)}
		for _, q := range open {
			if q.Seat == place.Seat {
				l.Open++
			}
		}
		all.Links = append(all.Links, l)
	}
	p.template, p.Title, p.Data = "seats", "Seats of "+r.Name, all
	return p, nil
}

// hasPeople reports whether people take seats in a run.
func hasPeople(r *Run) bool { return slices.ContainsFunc(r.Begun.Agents, world.Agent.Human) }

// seatPage is the data of the page of a seat.
type seatPage struct {
	Seat, To string // To is its address
	// State says whose turn it is, or that nobody plays the run, or that it has ended.
	State string
	Ended bool
	// Question is the oldest open question; nil: there is none. More is how many others wait.
	Question *question
	More     int
	Past     []seat.Exchange // the latest first
	Earlier  int             // how many others there are
	Problem  string          // why an answer was not accepted
	Unplayed string          // why no answer can be sent; empty: it can
	Style    template.CSS    // of the picture
}

// question is a question with its form.
type question struct {
	seat.Question
	Since   string         // what the question before did not have
	Asked   string         // the end of the prompt, which says what is wanted
	Prompt  []seat.Message // what is new in it, unless Asked is all of that
	Known   []seat.Message // that the seat has seen
	Picture template.HTML
	Alt     string
	Inputs  []*input // nil: a single text
	JSON    bool     // the text is JSON
	Text    string   // that was filled in
}

// maxPast is how many earlier questions a page has.
const maxPast = 30

// readSeatPage reads what the page of a seat shows.
func readSeatPage(ctx context.Context, r *Run, name string) (*seatPage, error) {
	p := &seatPage{Seat: name, To: runPath(r.Name, "seats", name)}
	o, err := r.Store.Outline(ctx)
	if err != nil {
		return nil, err
	}
	open, err := openQuestions(ctx, r, name)
	if err != nil {
		return nil, err
	}
	played := control.Played(ctx, r.Path)
	switch {
	case !o.Open && o.Last.State == journal.Complete:
		p.State, p.Ended = "The game is over.", true
	case !o.Open:
		p.State = "The run was stopped. This page changes when it is resumed."
	case !played:
		p.State, p.Unplayed = "The run is not being played at the moment. This page changes when it is resumed.", "nobody plays the run at the moment"
	case len(open) == 0:
		p.State = "It is not your turn. This page changes when you are asked."
	default:
		p.State = "It is your turn."
	}
	episode, known := seatEpisode(ctx, r, name, open)
	if !known {
		return p, nil
	}
	past, err := seat.ReadPast(ctx, r.Store, episode, name)
	if err != nil {
		return nil, err
	}
	if len(open) > 0 && o.Open {
		p.ask(open[0], past)
		p.More = len(open) - 1
	}
	p.Past = slices.Clone(past.Exchanges)
	slices.Reverse(p.Past)
	if len(p.Past) > maxPast {
		p.Earlier, p.Past = len(p.Past)-maxPast, p.Past[:maxPast]
	}
	return p, nil
}

// openQuestions returns the open questions of a seat.
func openQuestions(ctx context.Context, r *Run, name string) ([]seat.Question, error) {
	all, err := seat.Read(ctx, r.Path)
	return slices.DeleteFunc(all, func(q seat.Question) bool { return q.Seat != name }), err
}

// seatEpisode returns the episode to show: that of the oldest question, or the last one that has begun.
func seatEpisode(ctx context.Context, r *Run, name string, open []seat.Question) (episode int, ok bool) {
	if len(open) > 0 {
		return open[0].Episode, true
	}
	episode, err := seat.LatestEpisode(ctx, r.Store, r.Begun, name)
	return episode, err == nil && episode >= 0
}

// ask fills in the question.
func (p *seatPage) ask(q seat.Question, past *seat.Past) {
	fresh := past.Fresh(q)
	out := &question{Question: q, Prompt: fresh}
	if n := len(fresh); n > 0 {
		if out.Asked = lastParagraphs(fresh[n-1].Text, maxAskedText); n == 1 && out.Asked == fresh[0].Text {
			out.Prompt = nil
		}
	}
	out.Since = past.Since(q, out.Asked)
	if n := len(q.Messages) - len(fresh); n > 0 {
		out.Known = q.Messages[:n]
	}
	if o := q.Offer; o != nil && o.SVG != "" {
		if picture, style, err := chart.Clean(o.SVG); err == nil {
			out.Picture, out.Alt, p.Style = picture, o.Alt, style
		}
	}
	p.Question = out
	if len(q.Schema) == 0 {
		return
	}
	f, ok := seat.FormOf(q.Schema, q.Offer)
	if !ok {
		out.JSON = true
		return
	}
	out.Inputs = inputs(f.Fields, "", func(string) []string { return nil }, nil)
}

// maxAskedText is how many bytes of a prompt are above the form: what a person has to answer should be seen without scrolling.
const maxAskedText = 600

// lastParagraphs returns the last paragraphs of a text that are not longer than limit together, or the end of the last one.
func lastParagraphs(all string, limit int) string {
	if len(all) <= limit {
		return all
	}
	end := strings.TrimSpace(all)
	if len(end) > limit {
		end = strings.ToValidUTF8(end[len(end)-limit:], "")
		if _, after, ok := strings.Cut(end, "\n\n"); ok {
			return strings.TrimSpace(after)
		}
		return "…" + end
	}
	return end
}

// input is a field of a form in a page.
type input struct {
	*seat.Field
	ID      string // its key in the form
	Value   string
	Problem string
	Picked  []string   // of a list of choices
	Fields  []*input   // of a group
	Rows    [][]*input // of a list of groups
	Offers  []*offeredChoice
}

// offeredChoice is a choice that a world offers.
type offeredChoice struct {
	world.Choice
	ID     string
	Picked string
}

// emptyRows is how many rows of a list are empty in a new form.
const emptyRows = 3

// inputs returns the inputs for fields. get returns what was filled in.
func inputs(fields []*seat.Field, row string, get func(string) []string, problems map[string]string) []*input {
	out := make([]*input, len(fields))
	for i, f := range fields {
		key := f.In(row)
		in := &input{Field: f, ID: key, Problem: problems[key], Picked: get(key)}
		switch {
		case len(f.Offered) > 0:
			for n, c := range f.Offered {
				o := &offeredChoice{Choice: c, ID: key + "-" + strconv.Itoa(n)}
				if n < len(in.Picked) {
					o.Picked = in.Picked[n]
				}
				in.Offers = append(in.Offers, o)
			}
		case f.List && f.Type == seat.Group:
			filled := 0
			for n := range seat.MaxRows {
				one := inputs(f.Fields, strconv.Itoa(n), get, problems)
				if slices.ContainsFunc(one, func(i *input) bool { return i.Value != "" }) {
					filled = n + 1
				}
				in.Rows = append(in.Rows, one)
			}
			in.Rows = in.Rows[:min(seat.MaxRows, filled+emptyRows)]
		case f.Type == seat.Group:
			in.Fields = inputs(f.Fields, "", get, problems)
		default:
			in.Value = strings.Join(in.Picked, "\n")
		}
		out[i] = in
	}
	return out
}

// Has reports whether an option is picked.
func (in *input) Has(option string) bool { return slices.Contains(in.Picked, option) }

// Lines reports whether the input is a list of texts, one a line.
func (in *input) Lines() bool {
	return in.List && in.Type != seat.Choice && in.Type != seat.Group && len(in.Offered) == 0
}

// sendAnswer passes what was filled in to the process that plays the run. It returns nil if the answer was accepted, and
// the page with what is wrong otherwise.
func (v *Viewer) sendAnswer(ctx context.Context, r *Run, name string, filled url.Values) (*seatPage, error) {
	p, err := readSeatPage(ctx, r, name)
	if err != nil {
		return nil, err
	}
	q := p.Question
	if q == nil || q.ID != filled.Get("question") {
		p.Problem = "This question is not open any more: your answer was not used."
		return p, nil
	}
	text := strings.ReplaceAll(filled.Get("text"), "\r\n", "\n")
	f, ok := seat.FormOf(q.Schema, q.Offer)
	if ok {
		get := func(key string) []string { return filledTexts(q.Inputs, key, filled[key]) }
		value, problems := f.Answer(get)
		text = string(value)
		if len(problems) > 0 {
			p.Problem = "Some fields need your attention."
			q.Inputs = inputs(f.Fields, "", get, problems)
			return p, nil
		}
		q.Inputs = inputs(f.Fields, "", get, nil)
	} else {
		q.Text = text
	}
	v.guests.without(func() { err = seat.Send(ctx, r.Path, seat.Answer{Question: q.ID, Seat: name, Text: text}) })
	if err == nil {
		return nil, nil
	}
	if errors.Is(err, control.ErrNotPlayed) {
		p.Problem = "Nobody plays the run at the moment. Send your answer again when it is resumed."
		return p, nil
	}
	p.Problem = "Your answer was not accepted: " + placeProblems(err.Error(), q.Inputs)
	return p, nil
}

// filledTexts returns what was filled in for a key: the lines of a list of texts are its items.
func filledTexts(all []*input, key string, filled []string) []string {
	for _, in := range all {
		if in.ID == key && in.Lines() && len(filled) > 0 {
			return strings.Split(strings.ReplaceAll(filled[0], "\r\n", "\n"), "\n")
		}
	}
	out := make([]string, len(filled))
	for i, text := range filled {
		out[i] = strings.ReplaceAll(text, "\r\n", "\n")
	}
	return out
}

// placeProblems puts each part of a refusal beside the field that it names, and returns the rest.
func placeProblems(refusal string, all []*input) string {
	var rest []string
	for part := range strings.SplitSeq(refusal, "; ") {
		where, what, _ := strings.Cut(part, ": ")
		if i := strings.IndexAny(where, ".["); i >= 0 {
			where = where[:i]
		}
		i := slices.IndexFunc(all, func(in *input) bool { return in.Name == where && what != "" })
		if i < 0 {
			rest = append(rest, part)
			continue
		}
		all[i].Problem = strings.TrimPrefix(all[i].Problem+"; "+what, "; ")
	}
	if len(rest) == 0 {
		return "see below."
	}
	return strings.Join(rest, "; ")
}

// secretSuffix is added to the name of a run file to name its file with the secret of its seats.
const secretSuffix = "-keys"

// seatSecrets are the secrets of runs. Its zero value is ready to use.
type seatSecrets struct {
	mu     sync.Mutex
	byFile map[string]seatSecret
}

// seatSecret is what the keys of the seats of a run are derived from.
type seatSecret struct {
	text string
	lost error // why it is not in the file, and ends with the viewer
}

// key returns the key of a seat, and token the value of the cookie for which the key is exchanged.
func (s seatSecret) key(seat string) string   { return derive(s.text, "key", seat) }
func (s seatSecret) token(seat string) string { return derive(s.text, "cookie", seat) }

// equalKeys compares two keys or tokens in constant time.
func equalKeys(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func derive(secret, what, seat string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(what + "\x00" + seat))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:20])
}

// find returns the secret of a run file. A run whose links nobody has seen yet has none: find makes one if create is set, and otherwise ok
// is false. A secret that cannot be kept in its file is valid until the viewer ends.
func (k *seatSecrets) find(ctx context.Context, run string, create bool) (s seatSecret, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	path := files.Beside(run, secretSuffix)
	if s, ok = k.byFile[path]; ok {
		return s, true
	}
	text, err := readSecret(ctx, path)
	if err != nil && !create {
		return s, false
	}
	if err != nil {
		fresh := rand.Text()
		if text, err = writeSecret(ctx, path, fresh); err != nil {
			text = fresh
		}
	}
	if k.byFile == nil {
		k.byFile = map[string]seatSecret{}
	}
	k.byFile[path] = seatSecret{text, err}
	return k.byFile[path], true
}

// writeSecret writes a new secret to a file, unless the file has one, and returns the secret that it has.
func writeSecret(ctx context.Context, path, fresh string) (string, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.WriteString(fresh + "\n")
		return fresh, errors.Join(err, f.Close())
	}
	if !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return readSecret(ctx, path)
}

// readSecret returns the secret in a file. Only a file of this user counts that nobody else can read or write: others could
// know the secret, or have written it.
func readSecret(ctx context.Context, path string) (_ string, err error) {
	link, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !files.Private(link) {
		return "", fmt.Errorf("%s is not a regular file of yours that only you can read (mode 0600)", path)
	}
	f, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil || !os.SameFile(info, link) {
		return "", errors.Join(fmt.Errorf("%s was replaced while it was read", path), err)
	}
	b, err := files.ReadAll(ctx, f, path, 1<<10)
	text := strings.TrimSpace(string(b))
	if err == nil && len(text) < len(rand.Text()) {
		err = fmt.Errorf("%s is too short to be a secret", path)
	}
	return text, err
}
