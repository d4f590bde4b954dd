//go:build !unix

package files

// withoutWaiting is 0: opening a file never waits.
const withoutWaiting = 0

// SyncFolder does nothing: the system makes names durable.
func SyncFolder(string) error { return nil }
