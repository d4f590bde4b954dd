package arch

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	// unclearRE finds words that a name must not have: a newcomer cannot guess what they stand for.
	unclearRE = regexp.MustCompile(`^(office|parcel|fate|desk|purse|starved?|feeds?|ruined|came|befalls?|befell|nurse|dark|door|trail|told|hearing|essence|gallery|tariff|errand|sittings?|most)$`)
	// partRE finds the words of a name such as maxTokens, HTTPServer or run_file.
	partRE = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)
	// foreignRE finds turns of phrase that many readers have to look up.
	foreignRE = regexp.MustCompile(`(?i)\b((?:come|comes|came|coming) by|(?:that|which|what|it|one|who|this) (?:is|are|was|were) none|sittings?|(?:plays?|playing|played) on(?: until|[.,;:])|befalls?|befell|too dear|(?:come|comes|came|coming) to rest|in the place of|for want of|lest|thereby|whereof|wherein|hence|nought|naught|whatsoever|of what becomes|cannot be told|what (?:it|they|he|she) (?:came|comes) to|what (?:came|comes|becomes|became) of|may be had|is to be had|heeds?|forthwith|anew|seldom|likewise|by and by|to and fro)\b`)
)

// TestPlainNames refuses names in Go, and names of files, that say nothing to somebody who is new here.
func TestPlainNames(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, s := range sources(t) {
		check := func(line int, name string) {
			for _, word := range partRE.FindAllString(name, -1) {
				switch {
				case !unclearRE.MatchString(strings.ToLower(word)):
				case plain[name] != "":
					used[name] = true
				default:
					t.Errorf("%s:%d: %s: nobody can guess what %q stands for: use an ordinary word", s.path, line, name, word)
				}
			}
		}
		check(1, strings.TrimSuffix(path.Base(s.path), ".go"))
		for _, id := range declared(s.file) {
			check(s.line(id.Pos()), id.Name)
		}
	}
	for name := range plain {
		if !used[name] {
			t.Errorf("exceptions_test.go: %s: there is no such name any more", name)
		}
	}
}

// TestOneNameAPackage refuses files that import two of our packages with the same name, and imports of ours under
// another name: rename the package instead.
func TestOneNameAPackage(t *testing.T) {
	t.Parallel()
	module, used := packages(t)[0].Module.Path, map[string]bool{}
	for _, s := range sources(t) {
		seen := map[string]string{s.file.Name.Name: path.Dir(s.path)}
		if s.test {
			clear(seen) // a test may import the package that it tests
		}
		for _, i := range s.file.Imports {
			full, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !under(full, module) {
				continue
			}
			if other := seen[path.Base(full)]; other != "" {
				t.Errorf("%s:%d: %s and %s have the same name: rename one of them", s.path, s.line(i.Pos()), full, other)
			}
			seen[path.Base(full)] = full
			if i.Name == nil || i.Name.Name == "_" || i.Name.Name == path.Base(full) {
				continue
			}
			if key := s.path + " " + i.Name.Name; renamed[key] != "" {
				used[key] = true
			} else {
				t.Errorf("%s:%d: %s is imported as %s: use the name of the package, or rename the package", s.path, s.line(i.Pos()), full, i.Name.Name)
			}
		}
	}
	for key := range renamed {
		if !used[key] {
			t.Errorf("exceptions_test.go: %s: there is no such import any more", key)
		}
	}
}

// declared lists the names that a file declares.
func declared(f *ast.File) (out []*ast.Ident) {
	fields := func(l *ast.FieldList) {
		if l != nil {
			for _, field := range l.List {
				out = append(out, field.Names...)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			out = append(out, n.Name)
			fields(n.Recv)
		case *ast.FuncType:
			fields(n.Params)
			fields(n.Results)
		case *ast.TypeSpec:
			out = append(out, n.Name)
		case *ast.ValueSpec:
			out = append(out, n.Names...)
		case *ast.StructType:
			fields(n.Fields)
		case *ast.InterfaceType:
			fields(n.Methods)
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if id, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					out = append(out, id)
				}
			}
		}
		return true
	})
	return out
}

// TestPlainWords refuses turns of phrase that are not modern technical English, in comments, errors and documents.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	refuse := func(file string, line int, text string) {
		for _, m := range foreignRE.FindAllString(text, -1) {
			t.Errorf("%s:%d: %q: say it in plain words", file, line, m)
		}
	}
	for _, s := range sources(t) {
		if strings.HasPrefix(s.path, "test/arch/") {
			continue // this list
		}
		for _, group := range s.file.Comments {
			refuse(s.path, s.line(group.Pos()), group.Text())
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && (selected(call.Fun, "errors", "New") != "" || selected(call.Fun, "fmt", "Errorf") != "") {
				if text, ok := call.Args[0].(*ast.BasicLit); ok {
					refuse(s.path, s.line(n.Pos()), text.Value)
				}
			}
			return true
		})
	}
	for _, doc := range documents(t) {
		for i, line := range strings.Split(read(t, doc), "\n") {
			refuse(doc, i+1, line)
		}
	}
}
