// Package browser opens the pages of reports in a real browser, as a reader does.
//
// It has only tests, in a separate module, so that nothing else compiles the browser driver. Without chromium
// its tests are skipped. No other package uses it.
package browser
