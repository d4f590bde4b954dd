// Command parley is the command line of Parley with its own kinds and auction.
package main

import (
	"parley"

	"example/auction"
)

func main() { parley.Main(auction.Kind()) }
