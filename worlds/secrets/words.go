package secrets

import "math/rand/v2"

// Categories lists the names of the categories of words.
func Categories() []string {
	return []string{"animals", "clothing", "food", "instruments", "minerals", "plants", "tools", "weather"}
}

// category returns the words of a category. They are ones that nobody says by accident
// and everybody knows, and none is part of what players are told.
func category(name string) []string {
	switch name {
	case "animals":
		return []string{"axolotl", "gecko", "heron", "ibis", "lynx", "marmot", "narwhal", "otter", "pangolin", "quokka", "tapir", "walrus"}
	case "clothing":
		return []string{"apron", "beret", "bonnet", "cardigan", "clog", "corset", "kimono", "mitten", "poncho", "sandal", "tunic", "waistcoat"}
	case "food":
		return []string{"gnocchi", "horseradish", "kimchi", "lentil", "marzipan", "nougat", "papaya", "pretzel", "saffron", "tamarind", "turnip", "waffle"}
	case "instruments":
		return []string{"accordion", "bagpipe", "bassoon", "cello", "harmonica", "lute", "marimba", "oboe", "sitar", "tambourine", "tuba", "zither"}
	case "minerals":
		return []string{"basalt", "cobalt", "feldspar", "garnet", "gypsum", "jasper", "malachite", "obsidian", "opal", "quartz", "topaz", "turquoise"}
	case "plants":
		return []string{"bamboo", "cactus", "clover", "fern", "hemlock", "juniper", "lavender", "magnolia", "mistletoe", "nettle", "sycamore", "thistle"}
	case "tools":
		return []string{"anvil", "bellows", "chisel", "lathe", "plunger", "pulley", "sextant", "sickle", "spanner", "trowel", "tweezers", "whetstone"}
	case "weather":
		return []string{"blizzard", "cyclone", "drizzle", "frost", "hailstorm", "mirage", "monsoon", "sleet", "thaw", "tornado", "whirlwind", "zephyr"}
	default:
		return nil
	}
}

// deal draws n different words. With fewer than n words some are dealt twice.
func deal(r *rand.Rand, from []string, n int) []string {
	order := r.Perm(len(from))
	dealt := make([]string, n)
	for i := range dealt {
		dealt[i] = from[order[i%len(order)]]
	}
	return dealt
}
