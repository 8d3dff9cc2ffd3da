package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/oauth2/google"
)

// signLimit bounds how long it may take to obtain a credential: a role, a token.
const signLimit = 20 * time.Second

// amazon signs calls of Bedrock (SigV4) with what the AWS SDK finds: keys, profiles, roles, web identities, and
// those of the bot's machine. The SDK caches and renews them.
type amazon struct {
	credentials aws.CredentialsProvider
	signer      *v4.Signer
	region      string
}

func newAWS(p Provider, getenv func(string) string, out *outside) (*amazon, error) {
	client := awshttp.NewBuildableClient().WithTimeout(signLimit).WithTransportOptions(func(t *http.Transport) {
		t.Proxy, t.TLSClientConfig.RootCAs = out.proxy, out.roots
	})
	options := []func(*config.LoadOptions) error{config.WithRegion(p.Region), config.WithHTTPClient(client)}
	switch {
	case p.AccessKeyIDEnv != "":
		static, err := staticKeys(p, getenv)
		if err != nil {
			return nil, err
		}
		options = append(options, config.WithCredentialsProvider(static))
	case p.Profile != "":
		options = append(options, config.WithSharedConfigProfile(p.Profile))
	}
	ctx, cancel := context.WithTimeout(context.Background(), signLimit)
	defer cancel()
	c, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("the configuration of AWS cannot be read: %w; correct profile, AWS_PROFILE or the file", err)
	}
	if p.RoleARN != "" {
		c.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(c), p.RoleARN, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName = "deckhand"
		}))
	}
	return &amazon{c.Credentials, v4.NewSigner(), p.Region}, nil
}

func staticKeys(p Provider, getenv func(string) string) (aws.CredentialsProvider, error) {
	id, err := need(getenv, p.AccessKeyIDEnv)
	if err != nil {
		return nil, err
	}
	secret, err := need(getenv, p.SecretAccessKeyEnv)
	if err != nil {
		return nil, err
	}
	token := ""
	if p.SessionTokenEnv != "" {
		if token, err = need(getenv, p.SessionTokenEnv); err != nil {
			return nil, err
		}
	}
	return credentials.NewStaticCredentialsProvider(id, secret, token), nil
}

func (a *amazon) sign(ctx context.Context, r *http.Request, body []byte) error {
	limited, cancel := context.WithTimeout(ctx, signLimit)
	defer cancel()
	c, err := a.credentials.Retrieve(limited)
	if err != nil {
		return fmt.Errorf("the bot has no valid credential for Amazon Bedrock (%s); set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, renew them if they have expired (aws sso login), or give the bot's machine a role", inShort(err))
	}
	// Only what no proxy changes is signed.
	signed := &http.Request{Method: r.Method, URL: r.URL, Host: r.URL.Host, Header: http.Header{}, ContentLength: int64(len(body))}
	if t := r.Header.Get("Content-Type"); t != "" {
		signed.Header.Set("Content-Type", t)
	}
	sum := sha256.Sum256(body)
	if err := a.signer.SignHTTP(ctx, c, signed, hex.EncodeToString(sum[:]), "bedrock", a.region, time.Now()); err != nil {
		return fmt.Errorf("sign a call of Amazon Bedrock: %w", err)
	}
	for _, name := range []string{authorization, "X-Amz-Date", "X-Amz-Security-Token"} {
		if v := signed.Header.Get(name); v != "" {
			r.Header.Set(name, v)
		}
	}
	return nil
}

// tokens adds a token that has to be requested and renewed.
type tokens struct {
	// make makes source at the first use, and again after a failure.
	make  func() (oauth2.TokenSource, http.Header, error)
	whose string
	cure  string

	mu     sync.Mutex
	source oauth2.TokenSource
	more   http.Header
}

// newGoogle uses Google's application default credentials, or a file.
func newGoogle(p Provider, out *outside) *tokens {
	const scope = "https://www.googleapis.com/auth/cloud-platform"
	ctx := out.context()
	return &tokens{
		whose: "Vertex AI",
		cure:  "set GOOGLE_APPLICATION_CREDENTIALS to a file of credentials, sign in (gcloud auth application-default login), or give the bot's machine a service account",
		make: func() (oauth2.TokenSource, http.Header, error) {
			found, err := googleCredentials(ctx, p.CredentialsFile, scope)
			if err != nil {
				return nil, nil, err
			}
			var file struct {
				Quota string `json:"quota_project_id"`
			}
			_ = json.Unmarshal(found.JSON, &file) // the machine's own have none
			more := http.Header{}
			if file.Quota != "" {
				more.Set("X-Goog-User-Project", file.Quota)
			}
			return found.TokenSource, more, nil
		},
	}
}

func googleCredentials(ctx context.Context, file, scope string) (*google.Credentials, error) {
	if file == "" {
		return google.FindDefaultCredentials(ctx, scope)
	}
	text, err := os.ReadFile(file) //nolint:gosec // the admin names it
	if err != nil {
		return nil, err
	}
	var kind struct {
		Type google.CredentialsType `json:"type"`
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return nil, fmt.Errorf("%s holds no credentials of Google's", file)
	}
	return google.CredentialsFromJSONWithType(ctx, text, kind.Type, scope)
}

// newEntra uses a client's secret of Microsoft's Entra ID.
func newEntra(p Provider, secret, authority string, out *outside) *tokens {
	c := clientcredentials.Config{
		ClientID: p.ClientID, ClientSecret: secret, Scopes: []string{"https://cognitiveservices.azure.com/.default"},
		TokenURL: strings.TrimSuffix(authority, "/") + "/" + p.TenantID + "/oauth2/v2.0/token",
	}
	ctx := out.context()
	return &tokens{
		whose: "Microsoft Foundry", cure: "check tenant_id, client_id and the secret, and that it has not expired",
		make: func() (oauth2.TokenSource, http.Header, error) { return c.TokenSource(ctx), nil, nil },
	}
}

func (t *tokens) sign(_ context.Context, r *http.Request, _ []byte) error {
	source, more, err := t.ready()
	if err == nil {
		var token *oauth2.Token
		if token, err = source.Token(); err == nil {
			r.Header.Set(authorization, bearer+token.AccessToken)
			maps.Copy(r.Header, more)
			return nil
		}
	}
	return fmt.Errorf("the bot has no valid credential for %s (%s); %s", t.whose, inShort(err), t.cure)
}

func (t *tokens) ready() (oauth2.TokenSource, http.Header, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.source == nil {
		source, more, err := t.make()
		if err != nil {
			return nil, nil, err
		}
		t.source, t.more = source, more
	}
	return t.source, t.more, nil
}

// inShort is a library's error in one readable line. For a refusal by OAuth it is the server's text.
func inShort(err error) string {
	text := err.Error()
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		var said struct {
			Code        string `json:"error"`
			Description string `json:"error_description"`
		}
		_ = json.Unmarshal(refused.Body, &said) // or it is not readable
		text = strings.TrimSpace(said.Code + " " + said.Description)
		if text == "" && refused.Response != nil {
			text = refused.Response.Status
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return text
}
