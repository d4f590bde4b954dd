//go:build !unix

package bulk

import "os"

// replace replaces o's file, which must be closed, with the file tmp.
func replace(o *outFile, tmp string) error {
	if err := o.close(); err != nil {
		return err
	}
	return os.Rename(tmp, o.path)
}
