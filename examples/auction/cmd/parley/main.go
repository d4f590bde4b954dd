// Command parley is the command line of Parley with its own kinds and auction.
package main

import (
	"parley"
	"parley/worlds"

	"example/auction"
)

func main() { parley.Main(append(worlds.Standard(), auction.Kind())...) }
