// Package board draws positions of Diplomacy: the standard map with its owners, units,
// orders and what came of them, as SVG.
//
// The map is of our own drawing, a mesh in europe.mesh where every border is written
// once: two provinces share a border in the picture exactly if they are adjacent in
// the game. Pictures need nothing from outside and run no script, follow the
// reader's light or dark scheme, carry a title on every province, unit and order,
// and are the same bytes for the same scene. Text from outside is escaped; a scene
// that names what is not on the map is an error, never half a picture.
//
// Draw makes a file of its own. A page with many phases holds Map once and an
// Overlay for each phase; it may set the variables of Map's style (--pb-sea and so
// on) on the class pb to bring in its own colours.
//
// It knows no rules: whether an order is legal, or what came of it, is told to it.
package board

import (
	"io"
	"strings"
)

// Draw writes the scene as one SVG document that needs nothing else.
func Draw(w io.Writer, s Scene) error {
	a := standard()
	if err := s.check(a); err != nil {
		return err
	}
	var b strings.Builder
	open(&b, s, ` xmlns="http://www.w3.org/2000/svg"`)
	b.WriteString("<defs>\n" + definitions(a) + "</defs>\n")
	picture(&b, a, s)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Map returns what all pictures of a page have in common, as an SVG element that
// shows nothing by itself: shapes, symbols, style.
func Map() string {
	return `<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>` + "\n" + definitions(standard()) + "</defs></svg>\n"
}

// Overlay returns the scene as an SVG element for a page that also holds Map.
func Overlay(s Scene) (string, error) {
	a := standard()
	if err := s.check(a); err != nil {
		return "", err
	}
	var b strings.Builder
	open(&b, s, "")
	picture(&b, a, s)
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// standard reads the places of the standard map.
func standard() *atlas {
	a, err := readPlaces(placesText)
	if err != nil {
		panic(err) // the file is part of the program, and tested
	}
	return a
}

// standardMesh reads the shapes of the standard map.
func standardMesh() *mesh {
	m, err := readMesh(europe)
	if err != nil {
		panic(err) // as above
	}
	return m
}
