package dialect

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/wire/batches"
	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// parts returns the fields of a form, each written name=value.
func parts(boundary, fields, file string) string {
	var b strings.Builder
	for field := range strings.SplitSeq(fields, "&") {
		if name, value, ok := strings.Cut(field, "="); ok {
			b.WriteString("--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + strings.Replace(value, "NAME", file, 1) + "\r\n")
		}
	}
	return b.String()
}

// nameOf returns the name of a batch with our key, where a provider keeps a name but no metadata.
func nameOf(key string) string { return metaKey + "-" + key }

// keyIn returns our key in the name of a batch.
func keyIn(name string) string {
	key, _ := strings.CutPrefix(name, metaKey+"-")
	return key
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// given lists the files that a provider names.
func given(files ...*string) (out []string) {
	for _, f := range files {
		if f != nil && *f != "" {
			out = append(out, *f)
		}
	}
	return out
}

// why returns a reason for which a batch failed.
func why(code, message string) batch.Fault {
	return batch.Fault{Code: fault.Clean(code, 100), Message: fault.Clean(message, fault.MaxMessage)}
}

// openAIForm is OpenAI's, and Groq's.
func openAIForm() form {
	return form{
		files: "/files", fields: "purpose=batch", batches: "/batches", first: "?limit=100", cancel: "/cancel",
		creation: func(d *batch.Draft, file, endpoint string) any {
			return batches.Creation{InputFileID: file, Endpoint: endpoint, CompletionWindow: "24h", Metadata: map[string]any{metaKey: d.Key}}
		},
		read: func(body []byte) (snapshot, error) {
			var b batches.Batch
			err := json.Unmarshal(body, &b)
			return openAIBatch(&b), err
		},
		page: func(body []byte, _ int) (all []snapshot, next string, err error) {
			var page batches.List[batches.Batch]
			err = json.Unmarshal(body, &page)
			for i := range page.Data {
				all = append(all, openAIBatch(&page.Data[i]))
			}
			// Groq does not say whether there is more.
			if n := len(all); n > 0 && (page.HasMore || n >= 100) {
				next = "?limit=100&after=" + url.QueryEscape(all[n-1].id)
			}
			return all, next, err
		},
	}
}

// azureForm is Azure's: OpenAI's, except that a file may have to be waited for, and that the endpoint of a batch is not that
// of its lines.
func azureForm() form {
	f := openAIForm()
	f.settles = true
	f.creation = func(d *batch.Draft, file, endpoint string) any {
		return batches.Creation{InputFileID: file, Endpoint: strings.TrimPrefix(endpoint, "/v1"), CompletionWindow: "24h", Metadata: map[string]any{metaKey: d.Key}}
	}
	f.read = func(body []byte) (snapshot, error) {
		var b batches.AzureBatch
		err := json.Unmarshal(body, &b)
		return openAIBatch(b.OpenAI()), err
	}
	f.page = func(body []byte, _ int) (all []snapshot, next string, err error) {
		var page batches.List[batches.AzureBatch]
		err = json.Unmarshal(body, &page)
		for i := range page.Data {
			all = append(all, openAIBatch(page.Data[i].OpenAI()))
		}
		if n := len(all); n > 0 && page.HasMore {
			next = "?limit=100&after=" + url.QueryEscape(all[n-1].id)
		}
		return all, next, err
	}
	return f
}

func openAIBatch(b *batches.Batch) snapshot {
	n := b.RequestCounts
	out := snapshot{
		id: b.ID, file: b.InputFileID, key: text(b.Metadata[metaKey]), created: unix(b.CreatedAt), refusal: b.Error,
		state:   batch.State{Phase: batch.Running, Total: n.Total, Answered: n.Completed, Failed: n.Failed, Expires: unix(b.ExpiresAt)},
		outputs: given(b.OutputFileID, b.ErrorFileID),
	}
	switch b.Status {
	case batches.Completed, batches.Expired, batches.Cancelled:
		out.state.Phase = batch.Ended
	case batches.Failed:
		if n.Completed > 0 || len(given(b.OutputFileID)) > 0 { // it failed on the way, so some lines were answered
			out.state.Phase = batch.Ended
			break
		}
		out.state.Phase = batch.Failed
		if b.Errors == nil {
			break
		}
		for _, e := range b.Errors.Data {
			f := why(e.Code, e.Message)
			if e.Line != nil {
				f.Line = *e.Line
			}
			out.state.Faults = append(out.state.Faults, f)
		}
	}
	return out
}

func unix(seconds int64) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// mistralForm is Mistral's.
func mistralForm() form {
	return form{
		files: "/files", fields: "purpose=batch", batches: "/batch/jobs", first: "?page_size=100&page=0", cancel: "/cancel", bare: true,
		creation: func(d *batch.Draft, file, endpoint string) any {
			_, model := llm.SplitModel(d.Requests[0].Request.Model)
			return batches.MistralCreation{InputFiles: []string{file}, Model: model, Endpoint: endpoint, Metadata: map[string]any{metaKey: d.Key}, TimeoutHours: 24}
		},
		read: func(body []byte) (snapshot, error) {
			var b batches.MistralBatch
			err := json.Unmarshal(body, &b)
			out := mistralBatch(&b)
			out.refusal = body // if it is not a batch
			return out, err
		},
		page: func(body []byte, n int) (all []snapshot, next string, err error) {
			var page batches.MistralList
			err = json.Unmarshal(body, &page)
			for i := range page.Data {
				all = append(all, mistralBatch(&page.Data[i]))
			}
			if len(all) > 0 && (n+1)*100 < page.Total {
				next = "?page_size=100&page=" + strconv.Itoa(n+1)
			}
			return all, next, err
		},
	}
}

func mistralBatch(b *batches.MistralBatch) snapshot {
	out := snapshot{
		id: b.ID, key: text(b.Metadata[metaKey]), created: unix(b.CreatedAt),
		state:   batch.State{Phase: batch.Running, Total: b.Total, Answered: b.Succeeded, Failed: b.Failed},
		outputs: given(b.OutputFile, b.ErrorFile),
	}
	if len(b.InputFiles) > 0 {
		out.file = b.InputFiles[0]
	}
	switch b.Status {
	case batches.MistralSuccess:
		out.state.Phase = batch.Ended
	case batches.MistralTimeout:
		out.state.Phase, out.rest = batch.Ended, batch.ExpiredError()
	case batches.MistralCancelled:
		out.state.Phase, out.rest = batch.Ended, batch.CancelledError()
	case batches.MistralFailed:
		out.state.Phase = batch.Failed
		for _, e := range b.Errors {
			out.state.Faults = append(out.state.Faults, why("failed", e.Message))
		}
		if len(out.outputs) > 0 { // it failed on the way, so some lines were answered
			out.state.Phase = batch.Ended
		}
	}
	return out
}

// togetherForm is Together's. It keeps no name of ours: only the file identifies a batch. Its deadline
// is only a goal, so that a batch is not lost when it has passed.
func togetherForm() form {
	return form{
		files: "/files/upload", fields: "purpose=batch-api&file_name=NAME&file_type=jsonl", batches: "/batches", cancel: "/cancel", bare: true,
		creation: func(_ *batch.Draft, file, endpoint string) any {
			return batches.TogetherCreation{InputFileID: file, Endpoint: endpoint, CompletionWindow: "24h"}
		},
		read: func(body []byte) (snapshot, error) {
			var made batches.TogetherCreated
			if json.Unmarshal(body, &made) == nil && made.Batch != nil {
				return togetherBatch(made.Batch), nil
			}
			var b batches.TogetherBatch
			if json.Unmarshal(body, &b) != nil || b.ID == "" {
				return snapshot{refusal: body}, nil
			}
			return togetherBatch(&b), nil
		},
		page: func(body []byte, _ int) (all []snapshot, next string, err error) {
			var list []batches.TogetherBatch
			if body = bytes.TrimSpace(body); len(body) > 0 && body[0] == '{' {
				var page batches.List[batches.TogetherBatch]
				err = json.Unmarshal(body, &page)
				list = page.Data
			} else {
				err = json.Unmarshal(body, &list)
			}
			for i := range list {
				b := togetherBatch(&list[i])
				b.created = time.Time{} // the list has no order that is documented
				all = append(all, b)
			}
			return all, "", err
		},
	}
}

func togetherBatch(b *batches.TogetherBatch) snapshot {
	out := snapshot{
		id: b.ID, file: b.InputFileID, created: b.CreatedAt, outputs: given(&b.OutputFileID, &b.ErrorFileID),
		state: batch.State{Phase: batch.Running},
	}
	switch b.Status {
	case batches.TogetherCompleted:
		out.state.Phase = batch.Ended
	case batches.TogetherExpired:
		out.state.Phase, out.rest = batch.Ended, batch.ExpiredError()
	case batches.TogetherCancelled:
		out.state.Phase, out.rest = batch.Ended, batch.CancelledError()
	case batches.TogetherFailed:
		out.state.Phase, out.state.Faults = batch.Failed, []batch.Fault{why("failed", b.Error)}
		if len(out.outputs) > 0 {
			out.state.Phase, out.state.Faults = batch.Ended, nil
		}
	}
	return out
}

// lineRE matches the line in "line 2: invalid JSON".
var lineRE = regexp.MustCompile(`\bline ([0-9]{1,7}):`)

// lineIn returns the line of a file that a message names, or 0.
func lineIn(message string) int {
	m := lineRE.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}
