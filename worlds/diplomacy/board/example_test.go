package board_test

import (
	"fmt"
	"strings"

	"parley/worlds/diplomacy/board"
)

// A page with a replay holds the map once and an overlay for each phase.
func Example() {
	phases := []board.Scene{
		{Title: "Spring 1901", Units: []board.Unit{{Power: "France", At: "PAR"}}},
		{Title: "Fall 1901", Units: []board.Unit{{Power: "France", At: "BUR"}}},
	}
	page := board.Map()
	for _, p := range phases {
		overlay, err := board.Overlay(p)
		if err != nil {
			fmt.Println(err)
			return
		}
		page += overlay
	}
	fmt.Println(strings.Count(page, `id="pb-BUR"`), strings.Count(page, "A BUR, France"))
	// Output: 1 1
}
