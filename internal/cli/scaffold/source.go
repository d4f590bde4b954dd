package scaffold

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"parley/internal/kit/files"
)

// modulePath returns the path of Parley's module.
func modulePath() string {
	return strings.TrimSuffix(reflect.TypeFor[Module]().PkgPath(), "/internal/cli/scaffold")
}

// isWithin reports whether a path is that of the module, or within it.
func isWithin(p, module string) bool { return p == module || strings.HasPrefix(p, module+"/") }

// Source is where a new module gets Parley from: a published version, or a checkout.
type Source struct {
	version string
	dir     string
	// mod and sum are go.mod and go.sum of the checkout's example, which has the requirements of any new module.
	mod, sum string
}

// example is the module of a checkout that is like a new one.
const example = "examples/auction"

// ErrUnknown means that no source of Parley was found.
var ErrUnknown = errors.New("it is not known where to take Parley's source from: this program was not built from a published version, " +
	"and there is no checkout above or beside the new folder")

// Find looks for a source: the published version or the checkout that this program was built from, or else a checkout at,
// above or beside one of the folders. dirs are absolute.
func Find(dirs ...string) (Source, error) {
	if info, ok := debug.ReadBuildInfo(); ok {
		if version := published(info, modulePath()); version != "" {
			return Source{version: version}, nil
		}
	}
	if dir := builtFrom(); filepath.IsAbs(dir) { // not with -trimpath
		if s, err := Checkout(dir); err == nil {
			return s, nil
		}
	}
	return findNear(dirs)
}

// releaseRE matches versions that are tags. A version that Go generates for a commit contains a time.
var releaseRE = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[A-Za-z][0-9A-Za-z.]*)?$`)

// published returns the version of a module that a program was built from, if others can fetch it.
func published(info *debug.BuildInfo, module string) string {
	host, _, _ := strings.Cut(module, "/")
	if !strings.Contains(host, ".") {
		return ""
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		// A downloaded module has a checksum. A release is built from a clone, at a tag.
		if m.Path == module && m.Replace == nil && (m.Sum != "" || releaseRE.MatchString(m.Version)) {
			return m.Version
		}
	}
	return ""
}

// builtFrom returns the folder that this program was built from, if it is known.
func builtFrom() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return ""
	}
	dir := filepath.Dir(file)
	for range strings.Count(strings.TrimPrefix(reflect.TypeFor[Module]().PkgPath(), modulePath()), "/") {
		dir = filepath.Dir(dir)
	}
	return dir
}

// findNear returns the first checkout at or above one of the folders, or beside one or its parent.
func findNear(dirs []string) (Source, error) {
	name := path.Base(modulePath())
	for _, dir := range dirs {
		var tries []string
		for at := dir; ; at = filepath.Dir(at) {
			tries = append(tries, at)
			if at == filepath.Dir(at) {
				break
			}
		}
		tries = append(tries, filepath.Join(dir, name), filepath.Join(filepath.Dir(dir), name))
		for _, try := range tries {
			if s, err := Checkout(try); err == nil {
				return s, nil
			}
		}
	}
	return Source{}, ErrUnknown
}

var moduleRE = regexp.MustCompile(`(?m)^module[ \t]+"?([^\s"]+)"?.*$`)

// Checkout returns the checkout in a folder as a source.
func Checkout(dir string) (Source, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Source{}, err
	}
	mod, err := readSmall(filepath.Join(abs, "go.mod"))
	if err != nil {
		return Source{}, fmt.Errorf("%s is not the top folder of a checkout of Parley: %w", dir, err)
	}
	m := moduleRE.FindSubmatch(mod)
	if m == nil || string(m[1]) != modulePath() {
		return Source{}, fmt.Errorf("%s is not the top folder of a checkout of Parley: its go.mod does not say module %s", dir, modulePath())
	}
	s := Source{dir: abs}
	for name, text := range map[string]*string{"go.mod": &s.mod, "go.sum": &s.sum} {
		b, err := readSmall(filepath.Join(abs, filepath.FromSlash(example), name))
		if err != nil {
			return Source{}, fmt.Errorf("%s is not a whole checkout of Parley: %w", dir, err)
		}
		*text = string(b)
	}
	return s, nil
}

// readSmall reads a small file.
func readSmall(file string) ([]byte, error) { return files.Read(context.Background(), file, 1<<20) }

var (
	replaceRE = regexp.MustCompile(`(?m)^replace[ \t].*$`)
	plainRE   = regexp.MustCompile(`^[\pL\pN_./:~+@-]+$`)
)

// goFiles returns go.mod and go.sum for a module that gets Parley from the source. With a published version there is no
// go.sum yet: go mod tidy writes it.
func (s Source) goFiles(module string) map[string][]byte {
	if s.dir == "" {
		return map[string][]byte{"go.mod": fmt.Appendf(nil, "module %s\n\ngo %s\n\nrequire %s %s\n", module, goVersion, modulePath(), s.version)}
	}
	dir := filepath.ToSlash(s.dir)
	if !plainRE.MatchString(dir) {
		dir = strconv.Quote(dir)
	}
	mod := moduleRE.ReplaceAllLiteralString(s.mod, "module "+module)
	mod = replaceRE.ReplaceAllLiteralString(mod, "replace "+modulePath()+" => "+dir)
	return map[string][]byte{"go.mod": []byte(mod), "go.sum": []byte(s.sum)}
}

var requireRE = regexp.MustCompile(`(?m)^(?:require)?[ \t]+(\S+)[ \t]+v\d`)

// required returns the module that Parley needs and that contains a path, or "".
func (s Source) required(p string) string {
	var needs []string
	for _, m := range requireRE.FindAllStringSubmatch(s.mod, -1) {
		needs = append(needs, m[1])
	}
	if info, ok := debug.ReadBuildInfo(); ok && s.mod == "" {
		for _, m := range info.Deps {
			needs = append(needs, m.Path)
		}
	}
	if i := slices.IndexFunc(needs, func(m string) bool { return isWithin(p, m) }); i >= 0 {
		return needs[i]
	}
	return ""
}

// goVersion is the version of Go in go.mod: Parley's own.
const goVersion = "1.26.0"

// Tidy reports whether go mod tidy must fetch Parley before the module builds.
func (s Source) Tidy() bool { return s.dir == "" }

// String describes the source.
func (s Source) String() string {
	if s.dir == "" {
		return modulePath() + "@" + s.version
	}
	return s.dir
}
