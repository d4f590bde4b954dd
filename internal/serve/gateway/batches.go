package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"sync"

	"parley/internal/ask/batch"
	"parley/internal/ask/dialect"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/batches"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/fault"
	"parley/internal/ask/wire/request"
	"parley/internal/serve/gateway/format"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Batches of clients. What a batch may cost is set aside and recorded (journal.Batched) before it is sent. When its results are fetched, each
// of its requests becomes a call of the session with what it cost, and what is left is given back. Until then it stays set aside, in later processes too.
//
// All sessions share an account. So a session sees the files and batches only that it made, and the answers to its calls, which are recorded, say which these are.

const (
	maxLines    = 100_000 // requests of a batch
	maxOwned    = 1000    // files and batches that a session makes
	maxCustomID = 256     // bytes
	maxResults  = maxRecordedBody

	// requestsKind is the kind of the note with the requests of a file or a batch, as the provider got them.
	requestsKind = "requests"
	// lineKind is the kind of the note that says of which batch a call is.
	lineKind = "batch"
)

// clientBatch is a batch that a client made.
type clientBatch struct {
	key string // our name of it

	collecting sync.Mutex // held while its results are recorded; the lock of the session and mu come after it

	mu       sync.Mutex
	aside    llm.Money // still set aside for it
	left     int       // requests without a recorded result
	answered int       // recorded results that are answers
	closed   bool      // nothing is set aside any more

	// What the provider has said of it.
	ended   bool
	counted bool // billed is known
	billed  int  // answers that exist
}

// over reports whether nothing more of it can be billed.
func (b *clientBatch) over() bool {
	return b.left == 0 || b.ended && b.counted && b.answered >= b.billed
}

// see notes what the provider says of the batch, and returns the ids of its results.
func (b *clientBatch) see(object []byte) (results []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var m batches.MessageBatch
	read, whole := decodeLoosely(object, &m)
	if read && m.ProcessingStatus != "" {
		b.ended, b.billed, b.counted = m.ProcessingStatus == batches.MessagesEnded, m.RequestCounts.Succeeded, whole && m.RequestCounts.Total() > 0
		return nil
	}
	var o batches.Batch
	if read, whole = decodeLoosely(object, &o); !read {
		return nil
	}
	b.ended = slices.Contains([]string{batches.Completed, batches.Failed, batches.Expired, batches.Cancelled}, strings.ToLower(o.Status))
	for _, id := range []*string{o.OutputFileID, o.ErrorFileID} {
		if id != nil && *id != "" {
			results = append(results, *id)
		}
	}
	b.billed, b.counted = o.RequestCounts.Completed, whole && (o.RequestCounts.Total > 0 || len(results) == 0)
	return results
}

// decodeLoosely decodes an object, but for members of another type than expected. whole is whether there were none.
func decodeLoosely(object []byte, v any) (read, whole bool) {
	err := json.Unmarshal(object, v)
	_, other := errors.AsType[*json.UnmarshalTypeError](err)
	return err == nil || other, err == nil
}

// ownBatches has the files and batches of a session. The lock of the session guards it.
type ownBatches struct {
	byID map[string]*owned // by their ids at the provider
	made int
	kept map[[16]byte]bool // lines with a recorded result
}

// owned is a file of requests, a batch, or a file of its results.
type owned struct {
	upstream string
	requests int          // the call whose note has the requests
	batch    *clientBatch // nil: it is a file of requests
}

// batchAct is the body of the act that a call is which makes a file or a batch.
type batchAct struct {
	Upstream string `json:"upstream"`
	Requests int    `json:"requests"`      // see owned
	Key      string `json:"key,omitempty"` // of a batch
}

// json returns the body of the act.
func (a *batchAct) json() json.RawMessage {
	return append(body.Str(body.Int(body.Str([]byte{'{'}, "upstream", a.Upstream), "requests", int64(a.Requests)), "key", a.Key), '}')
}

// learn notes what a call has made, or was told. open has the batches that are not closed; another one is.
func (o *ownBatches) learn(c *Call, open map[string]*clientBatch) {
	if c.Act == nil && c.Wire.Status == 0 {
		o.keep(c.Digest)
	}
	if c.Act == nil || c.Error != nil {
		return
	}
	id := request.Str(c.Wire.Body, "id")
	var did batchAct
	if json.Unmarshal(c.Act.Body, &did) == nil && did.Upstream != "" && id != "" {
		w := &owned{upstream: did.Upstream, requests: did.Requests}
		if did.Key != "" {
			if w.batch = open[did.Key]; w.batch == nil {
				w.batch = &clientBatch{key: did.Key, closed: true}
			}
		}
		o.made++
		o.put(id, w)
	}
	if w := o.byID[id]; w != nil && w.batch != nil && !strings.HasPrefix(c.Act.Name, string(format.Files)) {
		for _, file := range w.batch.see(c.Wire.Body) {
			o.put(file, w)
		}
	}
}

func (o *ownBatches) put(id string, w *owned) {
	if o.byID == nil {
		o.byID = map[string]*owned{}
	}
	o.byID[id] = w
}

func (o *ownBatches) keep(line [16]byte) {
	if o.kept == nil {
		o.kept = map[[16]byte]bool{}
	}
	o.kept[line] = true
}

// open reports whether results are awaited.
func (o *ownBatches) open() bool {
	for _, w := range o.byID {
		if b := w.batch; b != nil {
			b.mu.Lock()
			closed := b.closed
			b.mu.Unlock()
			if !closed {
				return true
			}
		}
	}
	return false
}

// openBatches reads the batches that are not closed.
func openBatches(ctx context.Context, j journal.Journal, head *journal.Head) (map[string]*clientBatch, error) {
	open, err := batch.ReadOpen(ctx, j, head, true)
	found := make(map[string]*clientBatch, len(open))
	for i := range open {
		o := &open[i]
		b := &clientBatch{key: o.Key, aside: o.AtRisk(), answered: o.Answered}
		for _, id := range o.Lines {
			if !o.Safe(id) {
				b.left++
			}
		}
		found[o.Key] = b
	}
	return found, err
}

// upload is a file of requests.
type upload struct {
	fields  [][2]string
	name    string
	content []byte
}

// readUpload reads a form with a file.
func readUpload(contentType string, form []byte) (*upload, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/form-data" {
		return nil, errors.New("the body is not multipart/form-data")
	}
	u, r, seen := &upload{}, multipart.NewReader(bytes.NewReader(form), params["boundary"]), map[string]bool{}
	for {
		p, err := r.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the form cannot be read: %w", err)
		}
		value, err := io.ReadAll(p)
		name := p.FormName()
		switch {
		case err != nil:
			return nil, fmt.Errorf("the form cannot be read: %w", err)
		case seen[name] || p.Header.Get("Content-Transfer-Encoding") != "":
			return nil, fmt.Errorf("the form has %q twice, or in an encoding of its own", name)
		case name == "file":
			u.name, u.content = p.FileName(), value
		case name == "purpose" && string(value) != "batch":
			return nil, fmt.Errorf("purpose: %q: only files of requests for batches are passed on: set it to batch", value)
		case name == "purpose" || strings.HasPrefix(name, "expires_after["):
			u.fields = append(u.fields, [2]string{name, string(value)})
		default:
			return nil, fmt.Errorf("the form has an unknown field %q; want purpose, expires_after and file", name)
		}
		seen[name] = true
	}
	if !seen["file"] || !seen["purpose"] {
		return nil, errors.New("the form has no purpose or no file")
	}
	return u, nil
}

// form returns the form with other content, and its type.
func (u *upload) form(content []byte) (form []byte, contentType string, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range u.fields {
		if err := w.WriteField(f[0], f[1]); err != nil {
			return nil, "", err
		}
	}
	file, err := w.CreateFormFile("file", cmp.Or(u.name, "requests.jsonl"))
	if err == nil {
		_, err = file.Write(content)
	}
	err = errors.Join(err, w.Close())
	return b.Bytes(), w.FormDataContentType(), err
}

// readBatchCall reads a call about files and batches. It asks the same as another one if it has the same content.
func (x *exchange) readBatchCall() (*format.Call, error) {
	content := x.body
	if x.rt.API == format.Files && x.rt.Method == http.MethodPost {
		var err error
		if x.upload, err = readUpload(x.header.Get("Content-Type"), x.body); err != nil {
			return nil, err
		}
		content = x.upload.content
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %s%s\x00", x.rt.Method, x.rt.API, x.rt.Suffix)
	h.Write(content)
	c := &format.Call{API: x.rt.API}
	h.Sum(c.Digest[:0])
	return c, nil
}

// line is a request of a batch.
type line struct {
	id    string // custom_id
	call  *format.Call
	body  []byte // as the provider gets it
	to    *target
	price *llm.Request
}

// lineError is the error of a request of a batch.
func lineError(at string, err error) *llm.Error {
	e := &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusBadRequest, Code: "body_invalid"}
	if was, ok := errors.AsType[*llm.Error](err); ok {
		e.Code = cmp.Or(was.Code, "body_invalid")
	}
	e.Message = at + ": " + err.Error()
	return e
}

// readLines reads the requests of a file, or of the body that creates one of Anthropic's batches. find finds the model that answers.
func (x *exchange) readLines(content []byte, find func(api format.API, model string) (*target, *llm.Error)) (all []line, e *llm.Error) {
	seen := map[string]bool{}
	add := func(raw []byte, inFile bool) bool {
		at := fmt.Sprintf("requests[%d]", len(all))
		if inFile {
			at = fmt.Sprintf("request %d of the file", len(all)+1)
		}
		l, err := x.readLine(raw, inFile, find)
		switch {
		case err != nil:
		case len(all) == maxLines:
			err = fmt.Errorf("a batch has at most %d requests", maxLines)
		case l.id == "" || len(l.id) > maxCustomID || seen[l.id]:
			err = fmt.Errorf("want a custom_id of at most %d bytes that no other request has", maxCustomID)
		case len(all) > 0 && l.to.upstream != all[0].to.upstream:
			err = errors.New("its model is at another provider than that of the first request: a batch has one")
		case !l.to.upstream.batches(l.call.API):
			err = fmt.Errorf("%s has no batches of %s that the gateway can pass on", l.to.upstream.provider.Name, l.call.API)
		}
		if err != nil {
			e = lineError(at, err)
			return false
		}
		seen[l.id] = true
		all = append(all, *l)
		return true
	}
	if x.rt.API == format.MessageBatches {
		list, err := onlyMembers(content, "requests")
		if err != nil {
			return nil, lineError("the batch", err)
		}
		body.Elements(list["requests"], func(raw []byte) bool { return add(raw, false) })
	} else {
		for raw := range bytes.Lines(content) {
			if raw = bytes.TrimSpace(raw); len(raw) > 0 && !add(raw, true) {
				break
			}
		}
	}
	if e == nil && len(all) == 0 {
		e = lineError("the batch", errors.New("it has no requests"))
	}
	return all, e
}

// onlyMembers returns the members of an object that has no others than these, so that all servers read it alike.
func onlyMembers(b []byte, names ...string) (map[string][]byte, error) {
	if err := body.CheckNames(b, nil); err != nil {
		return nil, err
	}
	found, other := map[string][]byte{}, ""
	ok := body.Members(b, func(key, value []byte) bool {
		if !slices.Contains(names, string(key)) {
			other = string(key)
			return false
		}
		found[string(key)] = value
		return true
	})
	switch {
	case other != "":
		return nil, fmt.Errorf("unknown member %q; want one of %s", other, strings.Join(names, ", "))
	case !ok:
		return nil, errors.New("it is not a JSON object")
	}
	return found, nil
}

// readLine reads one request of a batch.
func (x *exchange) readLine(raw []byte, inFile bool, find func(api format.API, model string) (*target, *llm.Error)) (*line, error) {
	names, params := []string{"custom_id", "params"}, "params"
	if inFile {
		names, params = []string{"custom_id", "method", "url", "body"}, "body"
	}
	m, err := onlyMembers(raw, names...)
	if err != nil {
		return nil, err
	}
	api := format.Messages
	if inFile {
		url := request.String(m["url"])
		i := slices.IndexFunc([]format.API{format.Chat, format.Responses, format.Embeddings}, func(a format.API) bool { return url == "/v1"+a.Path() })
		if i < 0 || request.String(m["method"]) != http.MethodPost {
			return nil, errors.New("want the method POST, and the url /v1/chat/completions, /v1/responses or /v1/embeddings")
		}
		api = []format.API{format.Chat, format.Responses, format.Embeddings}[i]
	}
	l := &line{id: request.String(m["custom_id"]), body: m[params]}
	if l.call, err = format.Decode(api, format.Address{}, l.body); err != nil {
		return nil, err
	}
	if l.call.Stream {
		return nil, errors.New("stream: the answers of a batch are not streamed")
	}
	var e *llm.Error
	if l.to, e = find(api, l.call.Request.Model); e != nil {
		return nil, e
	}
	_, model := llm.SplitModel(l.to.model)
	l.call.LimitOutput(l.to.maxOutput)
	l.body = l.call.SetLimit(l.body, l.to.upstream.limitName(model))
	if model != l.call.Request.Model {
		l.body = format.SetModel(l.body, model)
	}
	one := *l.to
	one.fallbacks = nil // a provider answers a batch itself
	l.price, e = x.g.priced(&one, l.call, l.body)
	l.call.Request.Model = l.to.model
	switch {
	case x.rt.Method != http.MethodPost && e != nil: // it was sent, and its results are wanted
		l.price = &l.call.Request
	case x.rt.Method != http.MethodPost:
	case e != nil:
		return nil, e
	default:
		_, err = x.g.dispatch.WorstLine(l.price)
	}
	return l, err
}

// write returns the requests as the provider gets them.
func write(lines []line, inFile bool) []byte {
	var b []byte
	if !inFile {
		b = append(b, `{"requests":[`...)
	}
	for i := range lines {
		l := &lines[i]
		one := append(body.Str([]byte{'{'}, "custom_id", l.id), `,"params":`...)
		if inFile {
			one = body.Str(body.Str(body.Str([]byte{'{'}, "custom_id", l.id), "method", http.MethodPost), "url", "/v1"+l.call.API.Path())
			one = append(one, `,"body":`...)
		}
		b = append(append(append(b, one...), l.body...), '}')
		switch {
		case inFile:
			b = append(b, '\n')
		case i < len(lines)-1:
			b = append(b, ',')
		}
	}
	if !inFile {
		b = append(b, "]}"...)
	}
	return b
}

// batches reports whether a provider has batches of an endpoint's requests in its format.
func (u *relay) batches(api format.API) bool {
	return u.transport != nil && u.Speaks(api) && u.provider.APIVersion == "" && u.provider.BatchAPI() != "azure"
}

// serveBatch answers a call about files and batches.
func (x *exchange) serveBatch(ctx context.Context, cancel context.CancelCauseFunc) {
	x.session.mu.Lock()
	made := x.session.batches.made
	x.session.mu.Unlock()
	switch creates := x.rt.Suffix == "" && x.rt.Method == http.MethodPost; {
	case x.rt.Suffix == "" && !creates:
		x.fail(http.StatusBadRequest, "not_listed", "the gateway does not list files and batches, since the provider's list has those of all sessions: ask for one by its id")
	case creates && made >= maxOwned:
		x.fail(http.StatusTooManyRequests, "too_many_batches", fmt.Sprintf("a session makes at most %d files and batches: name another session", maxOwned))
	case x.upload != nil:
		x.sendFile(ctx, cancel)
	case creates:
		x.sendBatch(ctx, cancel)
	default:
		x.lookAtBatch(ctx, cancel)
	}
}

// refuse answers a call that was not sent.
func (x *exchange) refuse(e *llm.Error) {
	x.fail(errorStatus(e, x.rt.API), cmp.Or(e.Code, string(e.Kind)), e.Message)
}

// pass sends what is left of the call to a provider.
func (x *exchange) pass(ctx context.Context, u *relay, call transport.Request, contentType string, cancel context.CancelCauseFunc) *llm.Error {
	x.prepare(&target{upstream: u, model: u.provider.Name + "/"}, cancel)
	x.flight.reset()
	call.Method, call.Path, call.Hide = x.rt.Method, x.rt.API.Path()+x.rt.Suffix, x.flight.hide
	if call.Header = u.header(x.flight, false); contentType != "" {
		call.Header["Content-Type"] = []string{contentType}
	}
	e := u.pass(ctx, x.flight, call, "", func(a *transport.Answer) ([]byte, error) { return readResults(ctx, a) })
	if e == nil && x.rt.API == format.MessageBatches && request.Member(x.flight.Held, "results_url") != nil {
		// The client would ask the provider itself. Below its base URL, it asks here.
		x.flight.Held = format.SetMember(x.flight.Held, "results_url", "/v1"+x.rt.API.Path()+"/"+request.Str(x.flight.Held, "id")+"/results")
	}
	return e
}

// readResults reads an answer whose lines are JSON, and removes the key from each.
func readResults(ctx context.Context, a *transport.Answer) ([]byte, error) {
	b, err := readAll(ctx, a, maxResults)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(b))
	for raw := range bytes.Lines(b) {
		if raw, err = a.Hide().Body(raw, false); err != nil {
			return nil, fault.Malformed(err.Error(), err)
		}
		out = append(out, raw...)
	}
	return out, nil
}

// endBatch records the call and answers it. made is what it has made, if anything, and b the batch that it is about, if it is about one.
func (x *exchange) endBatch(e *llm.Error, made *batchAct, requests []byte, b *clientBatch) {
	rec := &Call{Replied: journal.Replied{Error: e, Act: &world.Act{Name: string(x.rt.API) + x.rt.Suffix}}}
	if made != nil {
		rec.Act.Body = made.json()
		if requests != nil {
			note := append(appendPacked([]byte{'{'}, requests, x.g.ledger.zip), '}')
			rec.Notes = append(rec.Notes, world.Note{Kind: requestsKind, Data: note})
		}
	}
	if e == nil {
		rec.Response = &llm.Response{Finish: llm.FinishStop}
		rec.Wire.Body = x.flight.Held
		open := map[string]*clientBatch{}
		if b != nil {
			open[b.key] = b
		}
		x.session.mu.Lock()
		x.session.batches.learn(rec, open)
		x.session.mu.Unlock()
		if b != nil {
			_ = x.g.closeBatch(b) // an error stops the gateway: see ledger.Failed
		}
	}
	x.finish(rec, e)
}

// sendFile passes on a file of requests.
func (x *exchange) sendFile(ctx context.Context, cancel context.CancelCauseFunc) {
	lines, e := x.readLines(x.upload.content, x.g.target)
	if e != nil {
		x.refuse(e)
		return
	}
	u, content := lines[0].to.upstream, write(lines, true)
	form, kind, err := x.upload.form(content)
	if err != nil {
		x.fail(http.StatusBadRequest, "body_invalid", err.Error())
		return
	}
	e = x.pass(ctx, u, transport.Request{Body: form}, kind, cancel)
	x.endBatch(e, &batchAct{Upstream: u.provider.Name, Requests: x.turn}, content, nil)
}

// sendBatch sets aside what a batch may cost, and passes it on.
func (x *exchange) sendBatch(ctx context.Context, cancel context.CancelCauseFunc) {
	find, content, made := x.g.target, x.body, &batchAct{Requests: x.turn}
	endpoint := ""
	if x.rt.API == format.Batches {
		m, err := onlyMembers(x.body, "input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after")
		if err != nil {
			x.refuse(lineError("the batch", err))
			return
		}
		endpoint = request.String(m["endpoint"])
		w, u := x.owned(request.String(m["input_file_id"]))
		if u == nil || w.batch != nil {
			x.fail(http.StatusNotFound, "file_unknown", "input_file_id: this session has uploaded no such file through the gateway")
			return
		}
		if content, err = x.requests(ctx, w.requests); err != nil {
			x.fail(http.StatusInternalServerError, "record_failed", err.Error())
			return
		}
		made.Requests, find = w.requests, sentTo(u)
	}
	lines, e := x.readLines(content, find)
	if i := slices.IndexFunc(lines, func(l line) bool { return endpoint != "" && endpoint != "/v1"+l.call.API.Path() }); e == nil && i >= 0 {
		e = lineError("endpoint", fmt.Errorf("request %d of the file has another url", i+1))
	}
	if e != nil {
		x.refuse(e)
		return
	}
	u, sent := lines[0].to.upstream, x.body
	var requests []byte
	if x.rt.API == format.MessageBatches {
		sent = write(lines, false)
		requests = sent
	}
	made.Upstream, made.Key = u.provider.Name, batch.NewKey()
	b := &clientBatch{key: made.Key, left: len(lines)}
	if e := x.intend(b, lines); e != nil {
		x.refuse(e)
		return
	}
	e = x.pass(ctx, u, transport.Request{Body: sent}, "", cancel)
	id := ""
	if e == nil {
		if id = request.Str(x.flight.Held, "id"); id == "" {
			e = fault.Malformed("the answer names no batch", nil)
		}
	}
	x.created(b, id, e)
	x.endBatch(e, made, requests, b)
}

// intend sets aside what a batch may cost, and records it.
func (x *exchange) intend(b *clientBatch, lines []line) *llm.Error {
	intent := &journal.Batched{Step: journal.BatchIntended, Key: b.key, Provider: lines[0].to.upstream.provider.Name, Model: lines[0].to.model}
	for i := range lines {
		worst, err := x.g.dispatch.WorstLine(lines[i].price)
		if err != nil {
			return llm.AsError(err) // not reached: it was asked before
		}
		intent.Lines = append(intent.Lines, lines[i].id)
		intent.Worst, intent.WorstLine = intent.Worst.Plus(worst), max(intent.WorstLine, worst)
	}
	if left := x.session.stepsLeft(lines[0].to.model); left < len(lines) {
		return &llm.Error{Kind: llm.KindRefused, Status: http.StatusTooManyRequests, Code: "max_steps", Message: fmt.Sprintf("the step limit leaves %d answers of this model to the session, and the batch asks for %d", left, len(lines))}
	}
	if e := x.g.dispatch.Budget().TakeRisk(intent.Worst); e != nil {
		return e
	}
	b.aside = intent.Worst
	if err := x.g.ledger.Batched(intent); err != nil {
		x.g.dispatch.Budget().AddRisk(-b.aside)
		return &llm.Error{Kind: llm.KindServer, Status: http.StatusInternalServerError, Code: "record_failed", Message: err.Error()}
	}
	return nil
}

// created records how the creation of a batch ended. One that may exist stays set aside. If it cannot be recorded, the gateway stops.
func (x *exchange) created(b *clientBatch, id string, e *llm.Error) {
	step := &journal.Batched{Step: journal.BatchCreated, Key: b.key, Batch: id}
	if e != nil {
		if e.Uncertain || e.Status < 400 || e.Status > 499 {
			return
		}
		step = &journal.Batched{Step: journal.BatchClosed, Key: b.key, Why: "refused: " + e.Message}
		x.g.dispatch.Budget().AddRisk(-b.aside)
	}
	_ = x.g.ledger.Batched(step)
}

// stepsLeft returns how many answers of a model the session may still get.
func (s *session) stepsLeft(model string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.info.MaxSteps == 0 {
		return math.MaxInt
	}
	return max(0, s.info.MaxSteps-s.steps[model])
}

// owned returns what the session has with an id, and where it is; nil: it has no such thing.
func (x *exchange) owned(id string) (*owned, *relay) {
	x.session.mu.Lock()
	w := x.session.batches.byID[id]
	x.session.mu.Unlock()
	if w == nil {
		return nil, nil
	}
	return w, x.g.upstreams[w.upstream]
}

// sentTo finds the models of requests as a provider got them.
func sentTo(u *relay) func(format.API, string) (*target, *llm.Error) {
	return func(_ format.API, model string) (*target, *llm.Error) {
		return &target{upstream: u, model: u.provider.Name + "/" + model}, nil
	}
}

// requests reads the requests that were recorded with a call.
func (x *exchange) requests(ctx context.Context, turn int) ([]byte, error) {
	entries, err := journal.Episode(ctx, x.g.cfg.Journal, x.session.Episode)
	for _, e := range entries {
		t, ok := e.(*journal.Turned)
		if !ok || t.Turn.Turn != turn {
			continue
		}
		for _, n := range t.Notes {
			var v wireNote
			if n.Kind == requestsKind && json.Unmarshal(n.Data, &v) == nil {
				return v.unpack()
			}
		}
	}
	return nil, cmp.Or(err, errors.New("the record does not have the requests of the batch"))
}

// lookAtBatch passes on a call about a file or a batch that exists.
func (x *exchange) lookAtBatch(ctx context.Context, cancel context.CancelCauseFunc) {
	id, what, _ := strings.Cut(strings.TrimPrefix(x.rt.Suffix, "/"), "/")
	w, u := x.owned(id)
	if u == nil || x.rt.API.Anthropic() != u.Speaks(format.Messages) {
		x.fail(http.StatusNotFound, "batch_unknown", "there is no file or batch "+id+" in this session: a session sees only what it made through the gateway")
		return
	}
	e := x.pass(ctx, u, transport.Request{Body: x.body}, "", cancel)
	if e == nil && w.batch != nil && (what == "results" || what == "content") {
		if err := x.keepResults(ctx, w, u); err != nil {
			x.fail(http.StatusInternalServerError, "record_failed", err.Error())
			return
		}
	}
	x.endBatch(e, nil, nil, w.batch)
}

// keepResults records the results of a batch that are not recorded yet, each as a call with what it cost.
func (x *exchange) keepResults(ctx context.Context, w *owned, u *relay) error {
	b, content, s := w.batch, x.flight.Held, x.session
	b.collecting.Lock()
	defer b.collecting.Unlock()
	sent, err := x.requests(ctx, w.requests)
	if err != nil {
		return err
	}
	lines, e := x.readLines(sent, sentTo(u))
	if e != nil {
		return e
	}
	asked := make(map[string]*line, len(lines))
	for i := range lines {
		asked[lines[i].id] = &lines[i]
	}
	var calls []*Call
	var aside llm.Money
	for raw := range bytes.Lines(content) {
		r, l := x.readResult(bytes.TrimSpace(raw), u, asked)
		if l == nil {
			continue
		}
		digest := batch.LineDigest(b.key, l.id)
		s.mu.Lock()
		kept := s.batches.kept[digest]
		s.batches.keep(digest)
		s.mu.Unlock()
		if kept {
			continue
		}
		resp, e, worst := x.g.dispatch.SettleLine(l.price, r.Response, r.Err)
		note := append(body.Str(body.Str([]byte{'{'}, "batch", b.key), "custom_id", l.id), '}')
		c := &Call{
			Replied: journal.Replied{
				Turn: journal.Turn{Episode: s.Episode, Turn: s.Turn()}, Label: string(l.call.API), Request: &l.call.Request, Response: resp, Error: e, At: x.began,
			},
			Digest: digest, Notes: []world.Note{{Kind: lineKind, Data: note}},
		}
		calls, aside = append(calls, c), aside.Plus(worst)
	}
	if len(calls) == 0 {
		return nil
	}
	if err := x.g.ledger.Keep(s.about.agent(), calls...); err != nil {
		return err
	}
	answered := 0
	for _, c := range calls {
		s.Answered(c)
		x.g.metrics.answered(format.API(c.Label), c)
		x.g.dispatch.Budget().Recorded(c.Cost())
		if c.Response != nil {
			answered++
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= len(calls)
	b.answered += answered
	aside = min(aside, b.aside)
	b.aside -= aside
	x.g.dispatch.Budget().AddRisk(-aside)
	return nil
}

// readResult reads a line of results, and finds the request that it answers; nil: it answers none.
func (x *exchange) readResult(raw []byte, u *relay, asked map[string]*line) (r batch.Result, l *line) {
	l = asked[request.Str(raw, "custom_id")]
	if l == nil {
		return r, nil
	}
	read := dialect.FileResult
	if l.call.API.Anthropic() {
		read = dialect.MessageResult
	}
	r = read(raw, u.codecs[l.call.API].Decode)
	_, model := llm.SplitModel(l.to.model)
	switch {
	case r.Response != nil:
		r.Response.Provider, r.Response.Model = u.provider.Name, cmp.Or(r.Response.Model, model)
	case r.Err != nil:
		r.Err = u.failed(x.flight, r.Err, model, nil)
	default:
		return r, nil
	}
	return r, l
}

// closeBatch gives back what is set aside for a batch of which nothing more can be billed.
func (g *Gateway) closeBatch(b *clientBatch) error {
	b.mu.Lock()
	if b.closed || !b.over() {
		b.mu.Unlock()
		return nil
	}
	g.dispatch.Budget().AddRisk(-b.aside)
	b.closed, b.aside = true, 0
	b.mu.Unlock()
	return g.ledger.Batched(&journal.Batched{Step: journal.BatchClosed, Key: b.key, Why: "collected"})
}
