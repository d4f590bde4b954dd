package viewer

import (
	"context"
	"errors"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"parley/internal/kit/auth"
	"parley/internal/run/seat"
	"parley/world"
)

// server serves the pages of seats. A viewer fills in its fields.
type server struct {
	// Get opens a run by its name.
	Get func(ctx context.Context, name string) (*Run, error)
	// File returns the path of a run file by the name of its run, without opening it.
	File func(name string) (path string, ok bool)
	// Path returns the address of a page of a run.
	Path func(run string, more ...string) string
	// Owner reports whether a request may see everything.
	Owner func(r *http.Request) bool
	// Cookie returns the name of the cookie of a seat.
	Cookie func(r *http.Request) string
	// Wait calls f, which waits for the process that plays a run.
	Wait func(f func())

	keys keys
}

// seatsScreen is a page to render.
type seatsScreen struct {
	Status   int    // of HTTP; 0: 200
	To       string // redirect instead
	Template string
	Title    string
	Live     string // the address of events; empty: the page does not change
	Style    template.CSS
	Data     any
}

// errSeatsNotFound means that there is no such seat, or that a request may not see it.
var errSeatsNotFound = errors.New("there is no such seat")

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

// Admits reports whether a request is for a page of a seat and has the cookie of that seat.
func (s *server) Admits(r *http.Request) bool {
	c, err := r.Cookie(s.Cookie(r))
	if err != nil {
		return false
	}
	name, place, ok := seatOf(r.URL.EscapedPath())
	return ok && s.admits(r.Context(), c.Value, name, place)
}

func (s *server) admits(ctx context.Context, token, name, place string) bool {
	of, ok := s.secret(ctx, name)
	return ok && same(token, of.token(place))
}

// secret returns the secret of a run. It opens no run and writes nothing: anybody can ask.
func (s *server) secret(ctx context.Context, name string) (secret, bool) {
	path, ok := s.File(name)
	if !ok {
		return secret{}, false
	}
	return s.keys.of(ctx, path)
}

// SignIn exchanges the key of a seat for the cookie of its pages, which are below page. It reports whether the key is
// right.
func (s *server) SignIn(w http.ResponseWriter, r *http.Request, page, key string) bool {
	name, place, ok := seatOf(page)
	if !ok {
		return false
	}
	of, ok := s.secret(r.Context(), name)
	if !ok || !same(key, of.key(place)) {
		return false
	}
	http.SetCookie(w, &http.Cookie{Name: s.Cookie(r), Value: of.token(place), Path: s.Path(name, "seats", place), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: auth.Encrypted(r)}) //nolint:gosec // the server speaks HTTP on the loopback interface
	return true
}

// open returns the run and the seat of a request.
func (s *server) open(req *http.Request) (r *Run, name string, err error) {
	name = req.PathValue("seat")
	owner := s.Owner(req)
	if !owner { // the guard of the server has checked it too
		c, err := req.Cookie(s.Cookie(req))
		if err != nil || !s.admits(req.Context(), c.Value, req.PathValue("run"), name) {
			return nil, "", errSeatsNotFound
		}
	}
	r, err = s.Get(req.Context(), req.PathValue("run"))
	if err != nil || !owner { // only links to seats that exist have keys
		return r, name, err
	}
	places, err := seat.Places(req.Context(), r.Store, r.Begun)
	if err == nil && !slices.ContainsFunc(places, func(p seat.Place) bool { return p.Seat == name }) {
		err = errSeatsNotFound
	}
	return r, name, err
}

// Page is the page of a seat.
func (s *server) Page(req *http.Request) (*seatsScreen, error) {
	r, name, err := s.open(req)
	if err != nil {
		return nil, err
	}
	data, err := readPage(req.Context(), r, name, s.Path(r.Name, "seats", name))
	if err != nil {
		return nil, err
	}
	p := &seatsScreen{Template: "seat", Title: "Seat " + name, Style: data.Style, Data: data}
	if !data.Ended {
		p.Live = s.Path(r.Name, "seats", name, "events")
	}
	return p, nil
}

// maxSeatsForm is how large a filled-in form may be, and sendTime how long the process that plays the run may take to accept
// an answer.
const (
	maxSeatsForm = 4 * seat.MaxAnswer
	sendTime     = 10 * time.Second
)

// Answer takes the form of a seat.
func (s *server) Answer(req *http.Request) (*seatsScreen, error) {
	r, name, err := s.open(req)
	if err != nil {
		return nil, err
	}
	to := s.Path(r.Name, "seats", name)
	ctx, cancel := context.WithTimeout(req.Context(), sendTime)
	defer cancel()
	body, err := io.ReadAll(io.LimitReader(req.Body, maxSeatsForm+1))
	if err != nil {
		return nil, err
	}
	filled, err := url.ParseQuery(string(body))
	if len(body) > maxSeatsForm || err != nil {
		filled = url.Values{} // it answers nothing
	}
	data, err := s.answer(ctx, r, name, to, filled)
	if err != nil {
		return nil, err
	}
	if data == nil {
		r.Tell()
		return &seatsScreen{To: to}, nil
	}
	if len(body) > maxSeatsForm {
		data.Problem = "Your answer is too long: shorten it."
	}
	// It does not follow the run: what was filled in stays.
	return &seatsScreen{Status: http.StatusUnprocessableEntity, Template: "seat", Title: "Seat " + name, Style: data.Style, Data: data}, nil
}

// Run returns the run of a page of a seat.
func (s *server) Run(req *http.Request) (*Run, error) {
	r, _, err := s.open(req)
	return r, err
}

// list is the seats of a run.
type list struct {
	Links []seatsLink
	Lost  string // why the links end with the viewer; empty: they do not
}

// seatsLink is a seat in the list of seats.
type seatsLink struct {
	seat.Place
	Open int
	To   string
}

// List is the page with the links of all seats, for the owner of the run.
func (s *server) List(req *http.Request, r *Run) (*seatsScreen, error) {
	places, err := seat.Places(req.Context(), r.Store, r.Begun)
	if err != nil {
		return nil, err
	}
	open, err := seat.Read(req.Context(), r.Path)
	if err != nil {
		return nil, err
	}
	of := s.keys.create(req.Context(), r.Path)
	var all list
	if of.lost != nil {
		all.Lost = of.lost.Error()
	}
	for _, place := range places {
		l := seatsLink{Place: place, To: s.Path(r.Name, "seats", place.Seat) + "#key=" + of.key(place.Seat)}
		for _, q := range open {
			if q.Seat == place.Seat {
				l.Open++
			}
		}
		all.Links = append(all.Links, l)
	}
	return &seatsScreen{Template: "seats", Title: "Seats of " + r.Name, Data: all}, nil
}

// hasPeople reports whether people take seats in a run.
func hasPeople(r *Run) bool { return slices.ContainsFunc(r.Begun.Agents, world.Agent.Human) }
