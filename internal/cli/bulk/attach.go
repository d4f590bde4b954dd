package bulk

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"

	"parley/internal/kit/files"
	"parley/llm"
)

// Opener reads a file that a request names, and makes a part of a message of it.
type Opener func(path string) (llm.Part, error)

// OpenAny returns an Opener of all files, for those that the user names.
func OpenAny(ctx context.Context) Opener {
	return func(path string) (llm.Part, error) {
		b, err := files.Read(ctx, path, llm.MaxFileBytes)
		if err != nil {
			return llm.Part{}, err
		}
		media, image := llm.MediaOf(b), http.DetectContentType(b)
		switch {
		case media == llm.MediaPDF:
			return llm.Part{File: &llm.File{Name: filepath.Base(path), MediaType: media, Data: b}}, nil
		case media != "":
			return llm.Part{File: &llm.File{MediaType: media, Data: b}}, nil
		case slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, image):
			return llm.Part{Image: &llm.Image{MediaType: image, Data: b}}, nil
		}
		return llm.Part{}, fmt.Errorf("%s: its content is no PDF, no picture (png, jpeg, gif, webp) and no audio (wav, mp3)", path)
	}
}

// OpenIn returns an Opener of the files in a folder, for those that a file in it names: it may come from others.
func OpenIn(ctx context.Context, folder string) Opener {
	var in files.Folders
	err := in.Add(folder)
	open := OpenAny(ctx)
	return func(path string) (llm.Part, error) {
		if err != nil {
			return llm.Part{}, err
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		real, held := in.Hold(path)
		if !held {
			return llm.Part{}, fmt.Errorf("%s is not in the folder of the requests, %s: put it there, or give its content in messages", path, folder)
		}
		return open(real)
	}
}

// attach adds the files of a line to its last message. Together they are bounded as one file is.
func (in *RequestLine) attach(req *llm.Request, open Opener) error {
	total := 0
	for i, path := range in.Files {
		last := &req.Messages[len(req.Messages)-1]
		if last.Role != llm.RoleUser {
			return fmt.Errorf("files: the last message must be the user's, and is the %s's", last.Role)
		}
		part, err := open(path)
		if err != nil {
			return fmt.Errorf("files[%d]: %w", i, err)
		}
		if part.File != nil {
			total += len(part.File.Data)
		} else if part.Image != nil {
			total += len(part.Image.Data)
		}
		if total > llm.MaxFileBytes {
			return fmt.Errorf("files[%d]: with %s, the files of the request have more than %d bytes: split the request", i, path, llm.MaxFileBytes)
		}
		last.Parts = append(last.Parts, part)
	}
	return nil
}
