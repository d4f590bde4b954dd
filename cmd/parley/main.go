// Command parley is the command line with the kinds of worlds that come with it.
package main

import "parley"

func main() { parley.Main() }
