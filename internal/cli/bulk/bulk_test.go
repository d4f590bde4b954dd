package bulk

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"parley/world"
)

// TestScanIsStrict checks that what scan reads is what a strict decoder reads, for lines and for lines
// with a wrong byte.
func TestScanIsStrict(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`{"id":"q1","prompt":"say \"hi\"\n","system":"é","model":"a/b","max_tokens":12,"temperature":0.5}`,
		`{"id":7,"messages":[{"role":"user","content":"hi"}],"max_tokens":1}`,
		`{"prompt":"hi","promt":"ho"}`, `{"prompt":null,"id":null}`, `{"prompt":"a","prompt":"b"} x`,
	} {
		for i := range len(line) {
			for _, c := range []string{line[i : i+1], "", "\\", `"`, "{", "}", "[", "]", ",", "0", "-", ".", "A", "n", "\xff", " ", "1e2"} {
				b := []byte(line[:i] + c + line[i+1:])
				var got, want RequestLine
				if !got.scan(b) {
					continue
				}
				if string(got.ID) == "null" {
					got.ID = nil
				}
				err := world.DecodeStrict(b, &want)
				if string(want.ID) == "null" {
					want.ID = nil
				}
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Fatalf("scan(%s) = %+v; strictly: %+v, %v", b, got, want, err)
				}
			}
		}
	}
}

// TestOutIsALink: what belongs to the file is beside the file that a link leads to, also if that was missing.
func TestOutIsALink(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.jsonl")
	if err := os.Symlink("real.jsonl", link); err != nil {
		t.Skip(err)
	}
	for range 2 {
		o, err := OpenOut(t.Context(), link, Keyer{})
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(dir, "real.jsonl"); o.path != want {
			t.Errorf("%s, want %s", o.path, want)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
}
