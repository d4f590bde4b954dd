package viewer

import (
	"net/http"
)

// shown makes a page of a page of seats. It has no links to other pages of the run.
func shown(f func(*http.Request) (*seatsScreen, error)) func(*http.Request) (*screen, error) {
	return func(req *http.Request) (*screen, error) {
		p, err := f(req)
		if err != nil {
			return nil, err
		}
		return &screen{status: p.Status, to: p.To, template: p.Template, Title: p.Title, Live: p.Live, Style: p.Style, Data: p.Data}, nil
	}
}

// seatList is the page with the links of all seats, for the owner of the run.
func (v *Viewer) seatList(req *http.Request) (*screen, error) {
	r, p, err := v.open(req, "Seats")
	if err != nil {
		return nil, err
	}
	list, err := v.seats.List(req, r)
	if err == nil {
		p.template, p.Title, p.Data = list.Template, list.Title, list.Data
	}
	return p, err
}
