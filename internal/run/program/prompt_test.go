package program

import "testing"

// TestMoved: a folder is replaced where it stands as such, and not as a part of another name.
func TestMoved(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"cd /app": "cd /new/x", "cd /app/y && ls": "cd /new/x/y && ls", "it is in /app.": "it is in /new/x.", "/app /app": "/new/x /new/x", `"/app"`: `"/new/x"`, "PATH=/app:/bin": "PATH=/new/x:/bin",
		"/apple": "/apple", "/my/app": "/my/app", "//app": "//app", "/app.old": "/app.old", "./app": "./app", "../app": "../app", "~/app": "~/app", "a/app": "a/app", "/app-2": "/app-2", "\u00e9/app": "\u00e9/app", "/app\u00e9": "/app\u00e9", "": "",
	} {
		if got := moved(text, [][2]string{{"/app", "/new/x"}}); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
