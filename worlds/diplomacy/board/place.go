package board

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed places.txt
var placesText string

// place is a province, or a coast of one, and where its things are drawn.
type place struct {
	abbr, name  string
	kind        string // land, sea, coast
	centre      bool   // a supply centre
	named       bool   // there is room for its name
	unit, label point
}

// atlas lists the places in the order of their file, and finds them by abbreviation.
type atlas struct {
	places []place
	index  map[string]int
}

// readPlaces reads the format that places.txt explains at its top.
func readPlaces(text string) (*atlas, error) {
	a := &atlas{index: map[string]int{}}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		p, err := readPlace(line)
		if err != nil {
			return nil, fmt.Errorf("board: places: line %d: %w", i+1, err)
		}
		a.index[p.abbr] = len(a.places)
		a.places = append(a.places, p)
	}
	return a, nil
}

func readPlace(line string) (place, error) {
	f := strings.Fields(line)
	if len(f) < 6 {
		return place{}, fmt.Errorf("%q: want PLACE KIND MARKS UNIT LABEL NAME", line)
	}
	p := place{
		abbr: f[0], kind: f[1], name: strings.Join(f[5:], " "),
		centre: strings.Contains(f[2], "*"), named: strings.Contains(f[2], "+"),
	}
	var err error
	if p.unit, err = onCanvas(f[3]); err != nil || p.kind == "coast" {
		return p, err
	}
	p.label, err = onCanvas(f[4])
	return p, err
}

// onCanvas reads X,Y.
func onCanvas(word string) (point, error) {
	x, y, _ := strings.Cut(word, ",")
	px, err := strconv.Atoi(x)
	if err != nil {
		return point{}, fmt.Errorf("%q: want X,Y", word)
	}
	py, err := strconv.Atoi(y)
	if err != nil {
		return point{}, fmt.Errorf("%q: want X,Y", word)
	}
	return point{float64(px), float64(py)}, nil
}

// find returns the place of an abbreviation, or what is wrong with it.
func (a *atlas) find(abbr string) (place, error) {
	i, ok := a.index[abbr]
	if !ok {
		return place{}, fmt.Errorf("no place %.20q on the map: want a province such as BUR, or a coast such as STP/SC", abbr)
	}
	return a.places[i], nil
}

// province is the part of a place's abbreviation before its coast.
func province(abbr string) string {
	p, _, _ := strings.Cut(abbr, "/")
	return p
}
