package viewer

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

const (
	// maxMarkdownDepth is how deep quotes and lists are nested. What is deeper is text.
	maxMarkdownDepth = 16
	// maxMarks is how many marks of a kind count in a paragraph, such as brackets: the time to match them can grow with
	// the square of their number. The others are text.
	maxMarks = 500
	// maxCells is how many cells the tables of a page have. What would be more is text: rows are filled up to the width
	// of the first, so a short text can make very many cells.
	maxCells = 20_000
)

// shallow is a parser of blocks that are not nested too deep.
type shallow struct{ parser.BlockParser }

func (s shallow) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if depth++; depth > maxMarkdownDepth {
			return nil, parser.NoChildren
		}
	}
	return s.BlockParser.Open(parent, reader, pc)
}

// few is a parser that reads the first marks of a paragraph.
type few struct {
	parser.InlineParser
	read int
}

func (f *few) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if f.read++; f.read > maxMarks {
		return nil
	}
	line, at := block.Position()
	n := f.InlineParser.Parse(parent, block, pc)
	switch n.(type) {
	case *ast.Link, *ast.Image:
		n.SetAttributeString(target, between(block, line, at))
	}
	return n
}

// CloseBlock ends a paragraph.
func (f *few) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	f.read = 0
	if c, ok := f.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, block, pc)
	}
}

// tables makes tables of paragraphs.
type tables struct {
	parser.ParagraphTransformer
	left int // cells
}

func (t *tables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	lines, widest := node.Lines(), 0
	for i := range lines.Len() {
		line := lines.At(i)
		widest = max(widest, bytes.Count(line.Value(reader.Source()), []byte("|")))
	}
	cells := (widest + 1) * lines.Len()
	if widest == 0 || cells > t.left || tooWide(lines, reader.Source()) {
		return
	}
	t.left -= cells
	t.ParagraphTransformer.Transform(node, reader, pc)
}
