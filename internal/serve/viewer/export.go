package viewer

import (
	"context"
	"net/url"
	"strconv"
	"strings"
)

// Export writes the pages into a folder, as a site without a server: every run with its overview, its report and the
// list of all its episodes, and the first episodes of each run with their calls. Labels are left out:
// they have names and notes of people. A Viewer that exports cannot serve.
func (v *Viewer) Export(ctx context.Context, dir string, episodes int) (Result, error) {
	ctx, stop := context.WithCancel(ctx)
	v.ctx, v.static, v.stats.Wait, v.catalog.Wait, v.runs.Unlabelled = ctx, true, true, true, true
	defer func() {
		stop()
		v.wg.Wait()
		v.runs.Close()
	}()
	return Site{Handler: v.routes(), Allow: func(u *url.URL) bool { return exported(u, episodes) }}.Write(ctx, dir)
}

// exported reports whether a site has a page: one that shows something, without choices that need a server.
func exported(u *url.URL, episodes int) bool {
	parts := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	q := u.Query()
	only := func(name string) bool { return len(q) == 0 || len(q) == 1 && q.Has(name) }
	switch {
	case parts[0] == "assets" || parts[0] == "":
		return true
	case parts[0] == "compare":
		return len(q) == 0 || q.Has("ea") || len(q) == 2 && q.Has("a") && q.Has("b")
	case len(parts) < 2 || parts[0] != "run":
		return false
	case len(parts) == 2 || parts[2] == "report":
		return len(q) == 0
	case parts[2] != "episodes":
		return false
	case len(parts) == 3:
		return only("after")
	default:
		n, err := strconv.Atoi(parts[3])
		return err == nil && n < episodes && (only("from") || only("image"))
	}
}
