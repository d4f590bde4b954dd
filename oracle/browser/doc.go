// Package browser opens the pages of reports in a real browser, as a reader does.
//
// It promises to be tests only, in a module of its own, so that nothing else compiles
// what drives a browser. Where there is no chromium its tests skip and say so. It is not
// for use by any other package.
package browser
