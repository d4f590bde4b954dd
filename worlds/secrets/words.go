package secrets

import (
	"math/rand/v2"
	"strings"
)

// Categories lists the names of the categories of words.
func Categories() []string {
	return []string{
		"animals", "birds", "buildings", "clothing", "colours", "food", "furniture", "instruments", "minerals", "plants", "professions", "sports", "tools", "vehicles", "weather",
	}
}

// category returns the words of a category. They are ones that nobody says by accident
// and everybody knows, and none is part of what players are told.
func category(name string) []string {
	switch name {
	case "animals":
		return strings.Fields("alpaca armadillo axolotl badger capybara chameleon chipmunk ferret gazelle gecko hedgehog hyena iguana lemur marmot meerkat mongoose narwhal otter pangolin quokka tapir walrus wombat")
	case "birds":
		return strings.Fields("albatross bittern cassowary cockatoo cormorant flamingo goldfinch heron hoopoe ibis kestrel kingfisher lapwing magpie nightingale ostrich pelican puffin quail sparrow starling toucan vulture woodpecker")
	case "buildings":
		return strings.Fields("abbey bakery barn bungalow chapel citadel distillery fortress gazebo granary greenhouse hangar lighthouse monastery observatory pagoda pavilion pyramid sawmill smithy stadium synagogue windmill ziggurat")
	case "clothing":
		return strings.Fields("apron balaclava beret blouse bonnet cardigan clog corset cummerbund dungarees garter jodhpurs kimono leotard mitten moccasin poncho sandal sarong stiletto tunic turban tuxedo waistcoat")
	case "colours":
		return strings.Fields("amber aquamarine auburn beige burgundy cerulean chartreuse cinnabar crimson cyan fuchsia indigo khaki lilac magenta maroon mauve ochre periwinkle russet scarlet sepia ultramarine vermilion")
	case "food":
		return strings.Fields("artichoke baguette cashew chutney dumpling fennel gnocchi guacamole horseradish hummus kimchi lasagna lentil marzipan meringue nougat paella papaya pretzel ravioli sauerkraut tamarind turnip waffle")
	case "furniture":
		return strings.Fields("armchair bassinet bookcase chandelier chiffonier couch cradle credenza cupboard divan dresser futon hammock hassock headboard lectern mattress nightstand ottoman recliner sideboard sofa trestle wardrobe")
	case "instruments":
		return strings.Fields("accordion bagpipe balalaika banjo bassoon bugle castanet cello clarinet cymbal dulcimer euphonium glockenspiel harmonica lute mandolin marimba oboe piccolo sitar tambourine trombone ukulele zither")
	case "minerals":
		return strings.Fields("alabaster amethyst azurite basalt bauxite cobalt dolomite feldspar flint garnet gneiss granite graphite gypsum halite jasper malachite obsidian opal pumice pyrite quartz topaz travertine")
	case "plants":
		return strings.Fields("acacia azalea bamboo begonia bracken cactus camellia chrysanthemum dandelion eucalyptus foxglove geranium hawthorn hemlock hydrangea juniper lavender magnolia mistletoe nettle orchid rhododendron sycamore thistle")
	case "professions":
		return strings.Fields("apothecary archivist beekeeper blacksmith botanist cartographer chimneysweep choreographer cobbler falconer geologist glassblower goldsmith hairdresser jeweller locksmith milliner notary optician pharmacist plumber puppeteer stonemason upholsterer")
	case "sports":
		return strings.Fields("archery badminton biathlon bobsleigh croquet curling decathlon dressage fencing gymnastics handball javelin judo kayaking lacrosse paragliding pentathlon polo rugby snooker sumo triathlon volleyball windsurfing")
	case "tools":
		return strings.Fields("anvil auger bellows chisel crowbar hacksaw jigsaw ladle lathe mallet pickaxe pitchfork plunger protractor pulley sextant sickle spanner spatula tongs trowel tweezers whetstone whisk")
	case "vehicles":
		return strings.Fields("airship ambulance bicycle bulldozer canoe caravan catamaran chariot dinghy ferry forklift galleon gondola helicopter hovercraft limousine motorbike rickshaw schooner sleigh submarine trolleybus unicycle zeppelin")
	case "weather":
		return strings.Fields("avalanche blizzard cloudburst cyclone downpour drizzle drought frost gale hailstorm heatwave hurricane landslide mirage monsoon permafrost rainbow sandstorm sleet snowdrift tornado typhoon whirlwind zephyr")
	}
	return nil
}

// deal draws n different words.
func deal(r *rand.Rand, from []string, n int) []string {
	order := r.Perm(len(from))
	dealt := make([]string, 0, n)
	for _, i := range order[:min(n, len(order))] {
		dealt = append(dealt, from[i])
	}
	return dealt
}
