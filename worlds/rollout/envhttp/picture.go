package envhttp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"strings"

	"parley/llm"
)

// maxSide is the maximum width and height of a picture that is given as numbers.
const maxSide = 8192

// picture reads a picture of an observation: an address, a data: address, base64, or rows of pixels with one, three or
// four numbers from 0 to 255.
func picture(raw json.RawMessage) (*llm.Image, error) {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return pixels(raw)
	}
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "data:") {
		return llm.ImageFrom(text)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("want an address, base64, or rows of pixels")
	}
	kind := http.DetectContentType(data)
	if !strings.HasPrefix(kind, "image/") {
		return nil, fmt.Errorf("its bytes are %s: want a PNG, JPEG, GIF or WebP", kind)
	}
	return &llm.Image{MediaType: kind, Data: data}, nil
}

// pixels makes a PNG of rows of pixels.
func pixels(raw json.RawMessage) (*llm.Image, error) {
	var rows [][][]uint8
	if json.Unmarshal(raw, &rows) != nil {
		var grey [][]uint8
		if err := json.Unmarshal(raw, &grey); err != nil {
			return nil, errors.New("want an address, base64, or rows of pixels with numbers from 0 to 255")
		}
		rows = nil // what the other form left
		for _, row := range grey {
			wide := make([][]uint8, len(row))
			for x, v := range row {
				wide[x] = []uint8{v}
			}
			rows = append(rows, wide)
		}
	}
	if len(rows) == 0 || len(rows) > maxSide || len(rows[0]) == 0 || len(rows[0]) > maxSide {
		return nil, fmt.Errorf("want 1 to %d rows and columns of pixels", maxSide)
	}
	out := image.NewNRGBA(image.Rect(0, 0, len(rows[0]), len(rows)))
	for y, row := range rows {
		if len(row) != len(rows[0]) {
			return nil, fmt.Errorf("row %d has %d pixels, and row 0 has %d", y, len(row), len(rows[0]))
		}
		for x, p := range row {
			c := color.NRGBA{A: 255}
			switch len(p) {
			case 1:
				c.R, c.G, c.B = p[0], p[0], p[0]
			case 3, 4:
				c.R, c.G, c.B = p[0], p[1], p[2]
				if len(p) == 4 {
					c.A = p[3]
				}
			default:
				return nil, fmt.Errorf("a pixel of %d numbers: want 1, 3 or 4", len(p))
			}
			out.SetNRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, out); err != nil {
		return nil, err
	}
	return &llm.Image{MediaType: "image/png", Data: b.Bytes()}, nil
}
