package arch

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestOnePackageDoc wants exactly one doc comment a package, in the package's words.
func TestOnePackageDoc(t *testing.T) {
	t.Parallel()
	docs, names := map[string]int{}, map[string]string{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		dir := path.Dir(s.path)
		names[dir] = s.file.Name.Name
		if s.file.Doc == nil {
			continue
		}
		docs[dir]++
		want := "Package " + s.file.Name.Name + " "
		if s.file.Name.Name == "main" {
			want = "Command " + path.Base(dir) + " "
		}
		if !strings.HasPrefix(s.file.Doc.Text(), want) {
			t.Errorf("%s: the package doc begins %q", s.path, want)
		}
	}
	for dir := range names {
		if docs[dir] != 1 {
			t.Errorf("%s has %d package docs, not one", dir, docs[dir])
		}
	}
}

// TestNames refuses names that say nothing.
func TestNames(t *testing.T) {
	t.Parallel()
	empty := []string{"util", "utils", "helper", "helpers", "manager", "handler", "service", "common", "base", "job", "misc", "shared"}
	for _, p := range packages(t) {
		if name := path.Base(p.path()); slices.Contains(empty, name) {
			t.Errorf("package %s: %q says nothing", p.path(), name)
		}
	}
	for _, s := range sources(t) {
		if name := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.path), ".go"), "_test"); slices.Contains(empty, name) {
			t.Errorf("%s: %q says nothing", s.path, name)
		}
	}
}

// TestInterfacesHaveNames refuses interfaces without a name, but as constraints of type parameters:
// what may be asked of a value is part of the package that owns the concept, with a comment that
// says what it promises.
func TestInterfacesHaveNames(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		allowed := map[ast.Expr]bool{}
		allow := func(params *ast.FieldList) {
			if params != nil {
				for _, f := range params.List {
					allowed[f.Type] = true
				}
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				allowed[n.Type] = true
				allow(n.TypeParams)
			case *ast.FuncType:
				allow(n.TypeParams)
			case *ast.InterfaceType:
				hasMethods := slices.ContainsFunc(n.Methods.List, func(f *ast.Field) bool { return len(f.Names) > 0 })
				if hasMethods && !allowed[n] {
					t.Errorf("%s:%d: an interface without a name: give it one where the concept is at home", s.path, s.line(n.Pos()))
				}
			}
			return true
		})
	}
}

// TestNoHiddenState refuses init functions and variables that could change.
func TestNoHiddenState(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s:%d: init(): importing a package has no effects here", s.path, s.line(f.Pos()))
			}
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				checkVars(t, s, g, spec.(*ast.ValueSpec), used)
			}
		}
	}
	for name := range variables {
		if !used[name] {
			t.Errorf("exceptions_test.go: %s: no such variable", name)
		}
	}
}

func checkVars(t *testing.T, s source, g *ast.GenDecl, v *ast.ValueSpec, used map[string]bool) {
	t.Helper()
	for i, name := range v.Names {
		full := path.Dir(s.path) + "." + name.Name
		switch {
		case name.Name == "_", embedded(g, v):
		case i < len(v.Values) && fixed(v.Values[i]):
		case variables[full] != "":
			used[full] = true
		default:
			t.Errorf("%s:%d: var %s: no state in a package; a table can be a function", s.path, s.line(name.Pos()), name.Name)
		}
	}
}

func embedded(g *ast.GenDecl, v *ast.ValueSpec) bool {
	for _, doc := range []*ast.CommentGroup{g.Doc, v.Doc} {
		if doc == nil {
			continue
		}
		for _, c := range doc.List {
			if strings.HasPrefix(c.Text, "//go:embed ") {
				return true
			}
		}
	}
	return false
}

// fixed says whether a variable's value is one that nobody changes: a sentinel
// error, a compiled pattern, or a decoder, which is its type's fields.
func fixed(e ast.Expr) bool {
	if sel, ok := e.(*ast.SelectorExpr); ok && strings.HasPrefix(sel.Sel.Name, "Err") {
		return true // another package's
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	fun := call.Fun
	if generic, ok := fun.(*ast.IndexExpr); ok {
		fun = generic.X
	}
	sel, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return false
	}
	return slices.Contains([]string{"errors.New", "fmt.Errorf", "regexp.MustCompile", "request.NewDecoder"}, x.Name+"."+sel.Sel.Name)
}

// docTag finds the tag that documents a field.
var docTag = regexp.MustCompile("[` ]doc:\"")

// TestParamsAreDocumentedOnce wants a field that has a doc tag to have no comment: schemas, docs and errors
// are made of the tag, and a comment would say something else one day.
func TestParamsAreDocumentedOnce(t *testing.T) {
	t.Parallel()
	tagged := 0
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			f, ok := n.(*ast.Field)
			if !ok || f.Tag == nil || !docTag.MatchString(f.Tag.Value) {
				return true
			}
			if tagged++; f.Doc != nil || f.Comment != nil {
				t.Errorf("%s:%d: %s has a doc tag and a comment: say it in the tag", s.path, s.line(f.Pos()), f.Names[0])
			}
			return true
		})
	}
	if tagged < 100 {
		t.Errorf("only %d fields with a doc tag were found", tagged)
	}
}

// TestOneHTTPServer wants every HTTP server of the program to be made by package auth, whose guard
// checks who may use it. Benchmarks make their own.
func TestOneHTTPServer(t *testing.T) {
	t.Parallel()
	made := 0
	for _, s := range sources(t) {
		if s.test || under(s.path, "test") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.CompositeLit:
				what = selected(n.Type, "http", "Server")
			case *ast.CallExpr:
				what = selected(n.Fun, "http", "ListenAndServe", "ListenAndServeTLS", "Serve", "ServeTLS")
			}
			if what == "Server" && path.Dir(s.path) == "internal/kit/auth" {
				made++
			} else if what != "" {
				t.Errorf("%s:%d: http.%s: use auth.Guard.Server", s.path, s.line(n.Pos()), what)
			}
			return true
		})
	}
	if made != 1 {
		t.Errorf("package auth makes %d servers, want one", made)
	}
}

// TestOneEstimator wants means and their intervals to be made by world.Sample alone, so that all
// tables say the same. Differences are computed in package report, and forecasts of calls in package estimate.
func TestOneEstimator(t *testing.T) {
	t.Parallel()
	made := 0
	for _, s := range sources(t) {
		dir := path.Dir(s.path)
		if s.test || under(s.path, "test") || under(dir, "internal/kit/statmath") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			estimates := []string{"Mean", "EstimateMean", "Share", "Clusters", "Wilson"}
			switch what := selected(e, "statmath", estimates...); {
			case what == "":
			case s.path == "world/sample.go":
				made++
			case dir == "internal/run/estimate", dir == "internal/read/report": // see above
			default:
				t.Errorf("%s:%d: statmath.%s: use world.Sample", s.path, s.line(n.Pos()), what)
			}
			return true
		})
	}
	if made == 0 {
		t.Error("world.Sample makes no estimate")
	}
}

// TestNoHiddenParameters refuses values in contexts: a reader of a function's signature does not see
// them, and the compiler does not check them. The few that must be are in exceptions_test.go.
func TestNoHiddenParameters(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			where := s.path
			if f, ok := d.(*ast.FuncDecl); ok {
				where += " " + f.Name.Name
			}
			ast.Inspect(d, func(n ast.Node) bool {
				e, ok := n.(*ast.SelectorExpr)
				if !ok || e.Sel.Name != "WithValue" { // whatever name context was imported by
					return true
				}
				if contextValues[where] == "" {
					t.Errorf("%s:%d: context.WithValue: use a parameter", s.path, s.line(n.Pos()))
				}
				used[where] = true
				return true
			})
		}
	}
	for where := range contextValues {
		if !used[where] {
			t.Errorf("exceptions_test.go: %s: it puts nothing into a context any more", where)
		}
	}
}

// selected returns which of the names of a package an expression is, or nothing.
func selected(e ast.Expr, pkg string, names ...string) string {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || !slices.Contains(names, sel.Sel.Name) {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); !ok || x.Name != pkg {
		return ""
	}
	return sel.Sel.Name
}

// TestErrorsNameNoPackage wants no error of the program to begin with the name of a package: a user reads it, and knows
// other words. A package whose name is a word of the documents may be named.
func TestErrorsNameNoPackage(t *testing.T) {
	t.Parallel()
	known := []string{"batch", "budget", "cluster", "dataset", "files", "gateway", "hub", "label", "replica", "score", "seat", "sim", "telemetry", "worker"}
	var names []string
	for _, p := range packages(t) {
		if name := path.Base(p.path()); under(p.path(), "internal") && !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	begins := regexp.MustCompile("^[\"`](" + strings.Join(names, "|") + "): ")
	checked := 0
	for _, s := range sources(t) {
		if s.test || !under(s.path, "internal") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || selected(call.Fun, "fmt", "Errorf") == "" && selected(call.Fun, "errors", "New") == "" && selected(call.Fun, "exit", "Usagef") == "" {
				return true
			}
			checked++
			if text, ok := call.Args[0].(*ast.BasicLit); ok && begins.MatchString(text.Value) {
				t.Errorf("%s:%d: the error begins with the name of a package", s.path, s.line(n.Pos()))
			}
			return true
		})
	}
	if checked < 100 {
		t.Errorf("only %d errors were found", checked)
	}
}
