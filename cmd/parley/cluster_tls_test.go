package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// authority makes a private certificate authority and a certificate of it for a host that is not this machine's name.
func authority(t *testing.T, host string) (ca, cert, key string) {
	t.Helper()
	folder := t.TempDir()
	put := func(name, kind string, der []byte) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	made := func(c, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if signer == nil {
			signer = k
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, k.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		return k, der
	}
	from, until := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Lab"}, NotBefore: from, NotAfter: until, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	rootKey, der := made(root, root, nil)
	ca = put("ca.crt", "CERTIFICATE", der)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotBefore: from, NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	leafKey, der := made(leaf, root, rootKey)
	cert = put("tls.crt", "CERTIFICATE", der)
	secret, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	return ca, cert, put("tls.key", "PRIVATE KEY", secret)
}

// TestListenWithACertificate: a run listens at all addresses with a certificate of a private authority, which names none of these. Its own
// workers, and one that joins by the certificate's name, play it.
func TestListenWithACertificate(t *testing.T) {
	t.Parallel()
	url, _ := provider(t)
	file := plan(t, url)
	for _, c := range []struct {
		name, host string
		args       []string
		join       bool
	}{{"its own workers", "hub.example", []string{"--workers", "1"}, false}, {"another", "localhost", nil, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ca, cert, key := authority(t, c.host)
			run := start(t, "secret-secret-secret", append([]string{"run", file, "--out", filepath.Join(t.TempDir(), "run.parley"), "--json", "--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key, "--tls-ca", ca}, c.args...)...)
			if c.join {
				var found []string
				run.until(func() bool {
					found = regexp.MustCompile(`join at tls://0\.0\.0\.0:(\d+)`).FindStringSubmatch(run.err.String())
					return found != nil
				})
				if found == nil {
					t.Fatal(run.err.String())
				}
				start(t, "secret-secret-secret", "worker", "--cluster", "tls://localhost:"+found[1], "--tls-ca", ca, "--quiet")
			}
			var got summary
			if err := run.wait(); err != nil || json.Unmarshal(run.out.Bytes(), &got) != nil || got.State != "complete" {
				t.Errorf("%v: %s%s", err, run.out, run.err)
			}
		})
	}
}
