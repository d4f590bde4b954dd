package viewer

import (
	"bytes"
	"regexp"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// The parser drops some of what it reads. What a reader must see is kept as attributes of nodes.
const (
	target = "target" // of a link or an image: its end as it was written, from the bracket that closes its label
	number = "number" // of an item of a list: its number as it was written, with the mark after it
)

// between returns the text from a position to where a reader is.
func between(block text.Reader, line int, at text.Segment) []byte {
	lastLine, last := block.Position()
	block.SetPosition(line, at)
	var out []byte
	for ; line < lastLine; line++ {
		part, _ := block.PeekLine()
		out = append(out, part...)
		block.AdvanceLine()
	}
	part, segment := block.PeekLine()
	out = append(out, part[:max(0, min(len(part), last.Start-segment.Start))]...)
	block.SetPosition(lastLine, last)
	return out
}

// items is a parser of items that keeps their numbers.
type items struct{ parser.BlockParser }

// numberRE finds the number of an item.
var numberRE = regexp.MustCompile(`^ *([0-9]+[.)])`)

func (i items) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, _ := reader.PeekLine()
	n, state := i.BlockParser.Open(parent, reader, pc)
	if found := numberRE.FindSubmatch(line); n != nil && found != nil {
		n.SetAttributeString(number, found[1])
	}
	return n, state
}

// kept returns an attribute of a node.
func kept(n ast.Node, name string) string {
	v, _ := n.AttributeString(name)
	b, _ := v.([]byte)
	return string(b)
}

// tooWide reports whether lines that may be a table have a row with more cells than the first: a table would not show them.
func tooWide(lines *text.Segments, source []byte) bool {
	widest := 0 // of the rows after a line
	for i := lines.Len() - 1; i > 0; i-- {
		line, head := lines.At(i), lines.At(i-1)
		value := line.Value(source)
		if isRule(value) && widest > cellsOf(head.Value(source)) {
			return true
		}
		widest = max(widest, cellsOf(value))
	}
	return false
}

// isRule reports whether a line may be the one under the first row of a table.
func isRule(line []byte) bool { return len(bytes.Trim(line, "|-: \t\r\n\v\f")) == 0 }

// headings is a parser of headings with a line under them. A heading that has a table stays text: the parser would move the lines before
// the table after it.
type headings struct {
	parser.BlockParser
	of    ast.Node // what was read last
	read  int      // its lines
	table bool     // one of these is under the first row of a table
}

func (h *headings) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	n, state := h.BlockParser.Open(parent, reader, pc)
	if n == nil {
		return nil, state
	}
	if last := pc.LastOpenedBlock().Node; h.of != last {
		h.of, h.read, h.table = last, 0, false
	}
	lines := h.of.Lines()
	for ; h.read < lines.Len() && !h.table; h.read++ {
		line := lines.At(h.read)
		h.table = h.read > 0 && isRule(line.Value(reader.Source()))
	}
	if h.table {
		return nil, parser.NoChildren
	}
	return n, state
}

// cellsOf returns how many cells the parser reads in a row.
func cellsOf(row []byte) int {
	row = bytes.Trim(row, " \t\r\n")
	at, end, n := 0, len(row), 0
	if end > 0 && row[0] == '|' {
		at++
	}
	if end > 0 && row[end-1] == '|' {
		end--
	}
	for ; at < end; at++ {
		for at < end && (row[at] != '|' || at > 0 && row[at-1] == '\\') {
			at++
		}
		n++
	}
	return n
}
