//go:build !unix

package files

// SyncFolder does nothing: the system makes names durable.
func SyncFolder(string) error { return nil }
