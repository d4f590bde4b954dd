// Command parley is the command line of Parley with its own kinds and auction.
package main

import (
	"example/auction"
	"parley"
	"parley/worlds"
)

func main() { parley.Main(append(worlds.Standard(), auction.Kind())...) }
