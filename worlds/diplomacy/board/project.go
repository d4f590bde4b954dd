package board

import "math"

// The canvas of the map, in the units of its viewBox.
const (
	width  = 2000
	height = 1720
)

// lens magnifies the map around a place, so that crowded corners get the room that
// units and arrows need. Far from it nothing moves.
type lens struct {
	lon, lat float64
	strength float64 // at the centre the scale is 1 + strength; under 2, or the map would fold
	radius   float64
}

func lenses() []lens {
	return []lens{
		{10, 48.5, 0.35, 420},  // the middle of Europe
		{-3.5, 55, 0.75, 150},  // Great Britain
		{5.5, 51, 0.35, 130},   // the Low Countries
		{11, 56.7, 0.6, 120},   // Denmark
		{21.5, 42, 0.45, 170},  // the Balkans
		{14.5, 41.5, 0.6, 140}, // Italy
		{31, 39.5, 0.45, 170},  // Turkey
		{-5, 40, 0.3, 170},     // Iberia
	}
}

// project places degrees east and north on the canvas.
func project(lon, lat float64) point {
	p := conic(lon, lat)
	at := p
	for _, l := range lenses() {
		away := p.minus(conic(l.lon, l.lat))
		r := away.length() / l.radius
		at = at.plus(away.times(l.strength * math.Exp(-r*r/2)))
	}
	return at
}

// conic is Lambert's conformal conic projection, true at 40 and 62 degrees north,
// with the middle of Europe in the middle of the canvas.
func conic(lon, lat float64) point {
	const (
		south, north = 40 * math.Pi / 180, 62 * math.Pi / 180
		scale        = 2180
		x, y         = 1000, 925 // where 14 degrees east, 50 north comes to lie
	)
	t := func(phi float64) float64 { return math.Tan(math.Pi/4 + phi/2) }
	n := math.Log(math.Cos(south)/math.Cos(north)) / math.Log(t(north)/t(south))
	rho := func(phi float64) float64 { return scale * math.Cos(south) / n * math.Pow(t(south)/t(phi), n) }
	r, turn := rho(lat*math.Pi/180), n*(lon-14)*math.Pi/180
	return point{x + r*math.Sin(turn), y + r*math.Cos(turn) - rho(50*math.Pi/180)}
}
