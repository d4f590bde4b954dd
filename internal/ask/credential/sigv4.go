package credential

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"

	"parley/internal/ask/provider"
	"parley/internal/ask/redact"
	"parley/llm"
)

// Signer signs the requests to one AWS server with the credentials that the AWS SDK finds: in the environment, in the shared
// files of the AWS CLI, from single sign-on, or from the machine. The secret key leaves neither the process nor the SDK, and
// only requests to AWS and to this machine are signed. What a signature adds to a request can be removed from its answer.
type Signer struct {
	service, region string
	mu              sync.Mutex
	found           aws.CredentialsProvider
	signer          *v4.Signer
	session         atomic.Pointer[session]
}

// session is the last session token, and its Redactor. All requests of some hours have the same.
type session struct {
	token string
	hide  *redact.Redactor
}

// NewSigner returns the Signer of a server. The region is in its address, or found as the AWS CLI finds it.
func NewSigner(service, address string) (*Signer, error) {
	u, err := url.Parse(address)
	if err != nil || !provider.GetsSignature(address) {
		return nil, errors.New("base_url: " + provider.NotSigned)
	}
	return &Signer{service: service, region: region.FindString(u.Hostname()), signer: v4.NewSigner()}, nil
}

var region = regexp.MustCompile(`\b[a-z]{2}(-[a-z]+)+-[0-9]\b`)

// Sign adds the signature to the header of r, which nobody else may use. body is that of r. hide removes the signature and
// the session token from what the server sends.
func (s *Signer) Sign(ctx context.Context, r *http.Request, body []byte) (hide *redact.Redactor, _ error) {
	from, err := s.credentials(ctx)
	if err != nil {
		return nil, err
	}
	c, err := from.Retrieve(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &llm.Error{Kind: llm.KindAuth, Message: "AWS credentials are not found: set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, run aws sso login, or name a Bedrock key with key_env. aws sts get-caller-identity says what is wrong"} // the SDK's own text may have what a program printed
	}
	sum := sha256.Sum256(body)
	signed := r.Clone(ctx)
	for name, values := range signed.Header {
		if len(values) == 0 { // net/http does not send it
			delete(signed.Header, name)
		}
	}
	if err := s.signer.SignHTTP(ctx, c, signed, hex.EncodeToString(sum[:]), s.service, s.region, time.Now()); err != nil {
		return nil, fmt.Errorf("sigv4: %w", err)
	}
	for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token"} {
		if v := signed.Header[name]; len(v) > 0 {
			r.Header[name] = v
		}
	}
	_, signature, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
	return redact.New(signature).And(s.hides(c.SessionToken)), nil
}

// hides returns the Redactor of a session token, or nil if it is empty.
func (s *Signer) hides(token string) *redact.Redactor {
	last := s.session.Load()
	if last == nil || last.token != token {
		last = &session{token, redact.New(token)}
		s.session.Store(last)
	}
	return last.hide
}

// credentials returns the SDK's chain of credentials, which renews them.
func (s *Signer) credentials(ctx context.Context) (aws.CredentialsProvider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found != nil {
		return s.found, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, &llm.Error{Kind: llm.KindAuth, Message: "the settings of AWS cannot be read: aws configure list says what is wrong"}
	}
	if s.region == "" {
		s.region = cfg.Region
	}
	if s.region == "" {
		return nil, &llm.Error{Kind: llm.KindAuth, Message: "the region of AWS is not known: set AWS_REGION, or use an address that names it"}
	}
	s.found = cfg.Credentials
	return s.found, nil
}
