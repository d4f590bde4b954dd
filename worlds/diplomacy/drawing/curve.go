package drawing

import (
	"math"
	"strconv"
)

// point is a point on the canvas: x to the right, y down.
type point struct{ x, y float64 }

func (p point) plus(q point) point          { return point{p.x + q.x, p.y + q.y} }
func (p point) minus(q point) point         { return point{p.x - q.x, p.y - q.y} }
func (p point) times(f float64) point       { return point{p.x * f, p.y * f} }
func (p point) length() float64             { return math.Hypot(p.x, p.y) }
func (p point) to(q point, t float64) point { return p.plus(q.minus(p).times(t)) }
func (p point) left() point                 { return point{p.y, -p.x} }
func (p point) round() point                { return point{math.Round(p.x), math.Round(p.y)} }

// unit returns p with length one. The zero point becomes one to the right.
func (p point) unit() point {
	l := p.length()
	if l == 0 {
		return point{1, 0}
	}
	return p.times(1 / l)
}

// curve is a chain of cubic Béziers: a start, and three points for each piece. Its points
// are whole numbers, so that tests see what is drawn.
type curve []point

// handle is the length of a Bézier's handles as a fraction of the piece's length: small
// enough that a curve does not swing out between unevenly spaced points.
const handle = 0.33

// smooth draws a curve through points.
func smooth(points []point) curve {
	at := func(i int) point { return points[min(max(i, 0), len(points)-1)] }
	c := curve{at(0).round()}
	for i := range len(points) - 1 {
		p, q := at(i), at(i+1)
		reach := q.minus(p).length() * handle
		out := p.plus(q.minus(at(i - 1)).unit().times(reach))
		in := q.minus(at(i + 2).minus(p).unit().times(reach))
		c = append(c, out.round(), in.round(), q.round())
	}
	return c
}

// at returns the point at t of a piece, t from 0 to 1.
func (c curve) at(piece int, t float64) point {
	p := c[piece*3 : piece*3+4]
	a, b, d := p[0].to(p[1], t), p[1].to(p[2], t), p[2].to(p[3], t)
	return a.to(b, t).to(b.to(d, t), t)
}

// path appends the curve to an SVG path, from the path's current point.
func (c curve) path(d []byte) []byte {
	for i := 1; i+2 < len(c); i += 3 {
		d = append(d, 'c')
		for j := range 3 {
			d = appendPair(d, c[i+j].minus(c[i-1]), j > 0)
		}
	}
	return d
}

// moveTo begins a path at p.
func moveTo(d []byte, p point) []byte { return appendPair(append(d, 'M'), p.round(), false) }

// appendPair appends two whole numbers in SVG's shortest form: a minus sign is a separator.
func appendPair(d []byte, p point, after bool) []byte {
	if after && p.x >= 0 {
		d = append(d, ' ')
	}
	d = strconv.AppendInt(d, int64(p.x), 10)
	if p.y >= 0 {
		d = append(d, ' ')
	}
	return strconv.AppendInt(d, int64(p.y), 10)
}

// middle is the point in the middle of the middle piece.
func (c curve) middle() point { return c.at((len(c)-1)/6, 0.5) }

// String is the point as a path has it.
func (p point) String() string { return string(appendPair(nil, p.round(), false)) }
