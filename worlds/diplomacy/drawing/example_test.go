package drawing_test

import (
	"fmt"
	"strings"

	"parley/worlds/diplomacy/drawing"
	"parley/worlds/diplomacy/rules"
)

// A page with a replay holds the map once and an overlay for each phase.
func Example() {
	b := rules.NewBoard()
	d := drawing.New(b)
	page := d.Base()
	for title, at := range map[string]string{"Spring 1901": "PAR", "Fall 1901": "BUR"} {
		location, _ := b.ByCode(at)
		unit := rules.Unit{Power: rules.France, Type: rules.Army, Location: location}
		page += d.Overlay(drawing.Scene{Title: title, Units: []drawing.Unit{{Unit: unit}}})
	}
	fmt.Println(strings.Count(page, `id="pb-BUR"`), strings.Count(page, "A BUR, France"))
	// Output: 1 1
}
