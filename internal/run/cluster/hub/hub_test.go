package hub

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func begin(t *testing.T, c Config) *Hub {
	t.Helper()
	h, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func connect(t *testing.T, url, token string, more ...nats.Option) (*nats.Conn, error) {
	t.Helper()
	options, _ := Options(token)
	nc, err := nats.Connect(url, append(append(more, options...), nats.PermissionErrOnSubscribe(true), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
	if err == nil {
		t.Cleanup(nc.Close)
	}
	return nc, err
}

// TestRunOf: the token of a hub is told from that of a run by its form.
func TestRunOf(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("0f", keyBytes)
	for token, want := range map[string]string{
		WorkerToken("secret", "a1"): "a1", "a1." + key: "a1",
		"": "", "secret": "", "my.secret.token": "", key: "", "." + key: "", "a-1." + key: "", "a1." + key + "0": "", "a1." + strings.ToUpper(key): "", "a1.b." + key: "",
	} {
		if got := RunOf(token); got != want {
			t.Errorf("%s: %q, want %q", token, got, want)
		}
	}
}

// TestTokens: who has no token, or that of another hub, cannot connect.
func TestTokens(t *testing.T) {
	t.Parallel()
	h := begin(t, Config{})
	for token, ok := range map[string]bool{
		h.Token(): true, WorkerToken(h.Token(), "a1"): true,
		"": false, "wrong": false, WorkerToken("wrong", "a1"): false, "b2" + strings.TrimPrefix(WorkerToken(h.Token(), "a1"), "a1"): false,
		WorkerToken(h.Token(), "a1.>"): false, WorkerToken(h.Token(), "*"): false, WorkerToken(h.Token(), ""): false,
	} {
		if _, err := connect(t, h.URL(), token); (err == nil) != ok {
			t.Errorf("token %q: %v, want it to connect: %v", token, err, ok)
		}
	}
}

// TestOneRun: a worker's token is good for its run, and for nothing of another.
func TestOneRun(t *testing.T) {
	t.Parallel()
	h := begin(t, Config{})
	all, err := connect(t, h.URL(), h.Token())
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"a1", "b2"} {
		for _, c := range []jetstream.StreamConfig{
			{Name: "P_" + run + "_LOG", Subjects: []string{"p." + run + ".x.log.>"}, Storage: jetstream.MemoryStorage},
			{Name: "P_" + run + "_LOTS", Subjects: []string{"p." + run + ".x.lot.>"}, Storage: jetstream.MemoryStorage, Retention: jetstream.WorkQueuePolicy},
		} {
			s, err := js.CreateStream(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(c.Name, "LOTS") {
				if _, err := s.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, name := range []string{"p." + run + ".x.log.0-1", "p." + run + ".x.lot.0-1"} {
			if _, err := js.Publish(t.Context(), name, []byte("a prompt")); err != nil {
				t.Fatal(err)
			}
		}
	}
	nc, err := connect(t, h.URL(), WorkerToken(h.Token(), "a1"))
	if err != nil {
		t.Fatal(err)
	}
	patient, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	worker, err := jetstream.New(nc, jetstream.WithDefaultTimeout(300*time.Millisecond)) // for what is refused: nothing answers
	if err != nil {
		t.Fatal(err)
	}
	for run, ok := range map[string]bool{"a1": true, "b2": false} {
		worker := worker
		if ok {
			worker = patient
		}
		errs := map[string]error{}
		_, errs["stream"] = worker.Stream(t.Context(), "P_"+run+"_LOG")
		_, errs["publish"] = worker.Publish(t.Context(), "p."+run+".x.log.0-1", nil, jetstream.WithRetryAttempts(1))
		consumer, err := worker.Consumer(t.Context(), "P_"+run+"_LOTS", "workers")
		if errs["consumer"] = err; err == nil {
			m, err := consumer.Next(jetstream.FetchMaxWait(time.Minute))
			if errs["next"] = err; err == nil {
				errs["ack"] = m.DoubleAck(t.Context())
			}
		}
		if log, err := js.Stream(t.Context(), "P_"+run+"_LOG"); err == nil {
			mine, _ := worker.Stream(t.Context(), "P_"+run+"_LOG")
			if mine != nil {
				_, errs["read"] = mine.GetMsg(t.Context(), log.CachedInfo().State.FirstSeq)
			}
		}
		for what, err := range errs {
			if (err == nil) != ok {
				t.Errorf("run %s: %s: %v, want it allowed: %v", run, what, err, ok)
			}
		}
	}
	for what, err := range map[string]error{
		"delete": worker.DeleteStream(t.Context(), "P_a1_LOG"),
		"create": func() error {
			_, err := worker.CreateStream(t.Context(), jetstream.StreamConfig{Name: "MINE", Subjects: []string{"mine"}})
			return err
		}(),
		"mirror": func() error {
			_, err := worker.CreateStream(t.Context(), jetstream.StreamConfig{Name: "P_a1_X", Mirror: &jetstream.StreamSource{Name: "P_b2_LOG"}})
			return err
		}(),
		"subscribe":         subscribe(nc, "p.b2.>"),
		"read answers":      subscribe(nc, "_INBOX.>"),
		"read all answers":  subscribe(nc, ">"),
		"read others' runs": subscribe(nc, "_INBOX_b2.>"),
	} {
		if err == nil {
			t.Errorf("a worker's token may %s", what)
		}
	}
}

// TestDrains: who has the hub's token drains a worker. With the token of a run, a worker can be told, but tells nobody: what it publishes does not
// arrive, and what it has others answer there is no such message.
func TestDrains(t *testing.T) {
	t.Parallel()
	h := begin(t, Config{})
	operator, err := connect(t, h.URL(), h.Token())
	if err != nil {
		t.Fatal(err)
	}
	worker, err := connect(t, h.URL(), WorkerToken(h.Token(), "a1"))
	if err != nil {
		t.Fatal(err)
	}
	drains, err := worker.SubscribeSync(DrainSubject("W"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := operator.Subscribe(StatusSubject("a1"), func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil { // at worst, what it says is answered
		t.Fatal(err)
	}
	for _, err := range []error{
		operator.Flush(), worker.Flush(), Drain(worker, "W"), worker.PublishRequest(StatusSubject("a1"), DrainSubject("W"), []byte(`{"run":"a1"}`)), worker.Flush(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	m, err := drains.NextMsg(time.Minute)
	if err != nil || Drains(m, "W") {
		t.Fatalf("%v %v: want the answer, and not what the worker's token published", m, err)
	}
	if err := Drain(operator, "W"); err != nil {
		t.Fatal(err)
	}
	if m, err := drains.NextMsg(time.Minute); err != nil || !Drains(m, "W") || Drains(m, "V") {
		t.Errorf("%v %v", m, err)
	}
}

// subscribe returns why a subject cannot be subscribed to.
func subscribe(nc *nats.Conn, name string) error {
	sub, err := nc.SubscribeSync(name)
	if err != nil {
		return err
	}
	for range 2 {
		if err := nc.Flush(); err != nil {
			return err
		}
	}
	_, err = sub.NextMsg(50 * time.Millisecond)
	if errors.Is(err, nats.ErrTimeout) {
		return nil
	}
	return err
}

// TestOffThisMachine: elsewhere, a token and a certificate are required, and what is sent is encrypted.
func TestOffThisMachine(t *testing.T) {
	t.Parallel()
	secure, roots := certificate(t)
	for _, c := range []Config{
		{Listen: "0.0.0.0:0"}, {Listen: "0.0.0.0:0", Token: "secret"}, {Listen: "0.0.0.0:0", TLS: secure}, {Listen: ":0"}, {Listen: "[::]:0", Token: "secret"},
		{Listen: "nonsense"}, {Listen: "127.0.0.1:99999"}, {Join: []string{"a:1", "b:1", "c:1"}, Route: "127.0.0.1:0"}, {Join: []string{"a:1"}, Route: "0.0.0.0:1", Folder: "x"},
	} {
		if h, err := Start(c); err == nil {
			_ = h.Close()
			t.Errorf("%+v started", c)
		}
	}
	h := begin(t, Config{Listen: "0.0.0.0:0", Token: "secret", TLS: secure})
	_, port, err := net.SplitHostPort(strings.TrimPrefix(strings.TrimPrefix(h.URL(), "tls://"), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	url := "tls://127.0.0.1:" + port
	if _, err := connect(t, url, "secret", nats.Secure(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13})); err != nil {
		t.Error(err)
	}
	if _, err := connect(t, url, "secret"); err == nil {
		t.Error("a certificate of nobody was accepted")
	}
}

// TestLog: nothing of a message is logged, whatever clients send.
func TestLog(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	h, err := Start(Config{Log: slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := connect(t, h.URL(), h.Token())
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "P_a1_LOG", Subjects: []string{"p.a1.>"}, Storage: jetstream.MemoryStorage})
	if err == nil {
		_, err = js.Publish(t.Context(), "p.a1.x", []byte("the secret prompt"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, h.URL(), "the wrong token"); !errors.Is(err, nats.ErrAuthorization) {
		t.Error(err)
	}
	nc.Close()
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for _, never := range []string{"prompt", h.Token(), "the wrong token"} {
		if strings.Contains(b.String(), never) {
			t.Errorf("the log has %q: %s", never, b.String())
		}
	}
	if b.Len() == 0 {
		t.Error("nothing was logged")
	}
}

// certificate returns the TLS settings of a server on this machine, and who signed its certificate.
func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(signed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS13}, pool
}

// TestStuck: a node whose folder cannot be written and whose server does not stop in time ends with an error, and does not wait for ever.
func TestStuck(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "node")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	h := begin(t, Config{Join: []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}, Route: "127.0.0.1:0", Folder: folder})
	h.config.Folder, h.stopsWithin = filepath.Join(folder, "gone"), 0
	err := h.Keep(t.Context(), func(problem error) { t.Errorf("the server stopped: %v", problem) })
	if err == nil || !strings.Contains(err.Error(), "cannot write to its folder") || !strings.Contains(err.Error(), "start this program again") {
		t.Errorf("%v", err)
	}
	h.stopsWithin = time.Minute
}
