package jsongen

import (
	"fmt"

	"parley/llm"
)

// Received says which files a request has, so that a plan can be tried without a model that reads them.
func Received(req *llm.Request) string {
	documents, recordings := 0, 0
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			switch {
			case p.File == nil:
			case p.File.IsAudio():
				recordings++
			default:
				documents++
			}
		}
	}
	if documents+recordings == 0 {
		return ""
	}
	return fmt.Sprintf("I was given %s and %s. ", counted(documents, "document"), counted(recordings, "recording"))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
