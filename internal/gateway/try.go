package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"deckhand/internal/redact"
)

// String is for people: "Amazon Bedrock, eu-central-1".
func (p Provider) String() string {
	name := map[Kind]string{Anthropic: "Anthropic's API", Bedrock: "Amazon Bedrock", Vertex: "Google Vertex AI", Foundry: "Microsoft Foundry"}[p.Kind]
	if place := cmp.Or(p.Region, p.Resource); place != "" {
		name += ", " + place
	}
	if u, err := p.address(); err == nil && p.BaseURL != "" {
		name += ", by " + u.Host
	}
	return name
}

// Check reports whether a session with this provider could be opened: its settings, and whether its credentials can
// be had. It makes no call of the model. Its error is a sentence with the cure.
func Check(ctx context.Context, p Provider, getenv func(string) string) (who string, err error) {
	out, err := newOutside(getenv)
	if err != nil {
		return "", err
	}
	defer out.transport.CloseIdleConnections()
	r, err := newRoute(p, getenv, out)
	if err != nil {
		return "", err
	}
	return r.provider.String(), r.ready(ctx)
}

// Trial is a provider's answer to a call for one token.
type Trial struct {
	Model         string
	Input, Output int64 // tokens
	Took          time.Duration
}

// Try makes one call of a provider, for one token. ask gets the environment, NAME=value, in which a CLI reaches its
// model, and makes it ask something: that call shows the form and the model's name, and does not leave. The error
// is a sentence with the cure.
func Try(ctx context.Context, p Provider, getenv func(string) string, ask func(ctx context.Context, env []string) error) (*Trial, error) {
	out, err := newOutside(getenv)
	if err != nil {
		return nil, err
	}
	defer out.transport.CloseIdleConnections()
	r, err := newRoute(p, getenv, out)
	if err != nil {
		return nil, err
	}
	asked, err := r.overhear(ctx, ask)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	trial, err := r.try(asked, out)
	if err != nil {
		return nil, err
	}
	trial.Took = time.Since(began)
	return trial, nil
}

// overhear intercepts the first call of the model that ask leads to.
func (r *route) overhear(ctx context.Context, ask func(ctx context.Context, env []string) error) (*http.Request, error) {
	at, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	token := redact.Token()
	var mu sync.Mutex
	var first *http.Request
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, ErrorLog: quiet, Handler: http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		out, err := r.imitate(ctx, in, token)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && first == nil {
			first = out
		}
		refuse(http.StatusPaymentRequired, "This call was for bot doctor, and has not left.").write(w)
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(at) // until it is closed
	}()
	stop := sync.OnceFunc(func() {
		_ = server.Close()
		<-served
	})
	defer stop()
	err = ask(ctx, r.environ(nil, door{url: "http://" + at.Addr().String(), token: token}))
	stop()
	mu.Lock()
	defer mu.Unlock()
	switch {
	case first != nil:
		return first, nil
	case err != nil:
		return nil, fmt.Errorf("the model was not asked by Claude Code (%s); check whether CLAUDE_COMMAND works", inShort(err))
	}
	return nil, errors.New("the model was not asked by Claude Code; check whether CLAUDE_COMMAND works")
}

// imitate reduces a call to a small one for one token, as the CLI would make it.
func (r *route) imitate(ctx context.Context, in *http.Request, token string) (*http.Request, error) {
	target, ok := r.target(in.URL)
	header, ours := r.header(in.Header)
	if !ok || !ours || in.Method != http.MethodPost || subtle.ConstantTimeCompare([]byte(in.Header.Get(tokenHeader)), []byte(token)) != 1 {
		return nil, errors.New("it is not a call of the model")
	}
	var call map[string]json.RawMessage
	if err := json.NewDecoder(io.LimitReader(in.Body, maxBody)).Decode(&call); err != nil {
		return nil, err
	}
	small := map[string]any{"max_tokens": 1, "messages": []any{map[string]any{"role": "user", "content": "Hi"}}}
	for _, name := range []string{"model", "anthropic_version"} {
		if v, ok := call[name]; ok {
			small[name] = v
		}
	}
	var system []json.RawMessage
	if r.provider.OAuthTokenEnv != "" && json.Unmarshal(call["system"], &system) == nil {
		small["system"] = system[:min(len(system), 2)] // by which such a token recognises the CLI
	}
	body, err := json.Marshal(small)
	if err != nil {
		return nil, err
	}
	for stream, whole := range map[string]string{"invoke-with-response-stream": "invoke", ":streamRawPredict": ":rawPredict"} {
		target.Path, target.RawPath = strings.Replace(target.Path, stream, whole, 1), strings.Replace(target.RawPath, stream, whole, 1)
	}
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out.Header = header
	return out, r.sign(ctx, out, body)
}

// try sends the call.
func (r *route) try(call *http.Request, out *outside) (*Trial, error) {
	client := &http.Client{Transport: out.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(call)
	if err != nil {
		return nil, unreached(call.URL.Host, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxError))
	if err != nil {
		return nil, unreached(call.URL.Host, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, r.refused(resp.StatusCode, body)
	}
	var answer struct {
		Model string `json:"model"`
		Usage struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("%s answers, but not as the model's API does; correct base_url", call.URL.Host)
	}
	return &Trial{Model: answer.Model, Input: answer.Usage.Input, Output: answer.Usage.Output}, nil
}

// unreached turns a network error into a sentence with the cure.
func unreached(host string, err error) error {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var expired x509.CertificateInvalidError
	var dns *net.DNSError
	cure := "look whether the bot's machine may reach it, by HTTPS_PROXY if only a proxy may"
	switch text := err.Error(); {
	case errors.As(err, &authority):
		cure = "its certificate is of an authority that is not known here: set SSL_CERT_FILE or NODE_EXTRA_CA_CERTS to a file (PEM) with your company's certificates"
	case errors.As(err, &name), errors.As(err, &expired):
		cure = "its certificate does not hold; whoever runs it has to renew it, or base_url names another host than it does"
	case strings.Contains(text, http.StatusText(http.StatusProxyAuthRequired)):
		cure = "the proxy wants a user and a password: write them into HTTPS_PROXY (http://user:password@proxy:3128), or let it know the bot's machine"
	case strings.Contains(text, "proxyconnect"):
		cure = "the proxy that HTTPS_PROXY names cannot be reached: correct it, or list the host in NO_PROXY"
	case strings.HasSuffix(text, http.StatusText(http.StatusForbidden)), strings.HasSuffix(text, http.StatusText(http.StatusBadGateway)):
		cure = "the proxy that HTTPS_PROXY names refuses it: allow the host there"
	case errors.As(err, &dns):
		cure = "there is no such host: correct the region, the resource or base_url, or the machine's DNS"
	}
	return fmt.Errorf("%s cannot be reached (%s); %s", host, inShort(errors.Unwrap(err)), cure)
}

// refused turns a provider's error into a sentence with the cure.
func (r *route) refused(status int, body []byte) error {
	return fmt.Errorf("the provider answers with status %d (%s); %s", status, inShort(errors.New(wordsOf(r.mask(body)))), r.cure(status, string(body)))
}

// wordsOf extracts the message of a provider's error, in any of its forms.
func wordsOf(body []byte) string {
	var said struct {
		Message string          `json:"message"`
		Upper   string          `json:"Message"`
		Error   json.RawMessage `json:"error"`
	}
	var inner struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &said) != nil {
		return "no reason"
	}
	_ = json.Unmarshal(said.Error, &inner) // a text, or nothing
	return cmp.Or(inner.Message, said.Message, said.Upper, "no reason")
}

// cure is what to do about a provider's status.
func (r *route) cure(status int, body string) string {
	kind, has := r.provider.Kind, func(words string) bool { return strings.Contains(strings.ToLower(body), words) }
	switch {
	case status == http.StatusTooManyRequests:
		return "the way and the credential work; the quota is used up: ask the provider for more, or wait"
	case kind == Bedrock && has("throughput"):
		return "the model is asked by an inference profile in this region: name it under models, such as sonnet: eu.anthropic.claude-…"
	case kind == Bedrock && (has("expired") || has("security token") || has("signature")):
		return "the credential of AWS does not hold: renew it; look at the clock of the bot's machine, too"
	case kind == Bedrock && (status == http.StatusForbidden || status == http.StatusNotFound):
		return "enable access to the model in Amazon Bedrock's console, in this region (Model access), and allow the role bedrock:InvokeModel and bedrock:InvokeModelWithResponseStream; or correct region or models"
	case kind == Bedrock && status == http.StatusBadRequest:
		return "correct region or models: the model's id there is not known"
	case kind == Vertex && (status == http.StatusUnauthorized || status == http.StatusForbidden):
		return "give the bot's account the role Vertex AI User (roles/aiplatform.user) in the project, and enable the model in Model Garden"
	case kind == Vertex && status == http.StatusNotFound:
		return "the model is not in this region, or not enabled in Model Garden: correct region, regions or models"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return "the credential is not taken: correct or renew what the provider's variables hold"
	case status == http.StatusNotFound:
		return "the model or the address is not there: correct model, models or base_url"
	case has("credit balance"):
		return "the account has no credit left: buy some"
	case status >= 500:
		return "the provider has trouble of its own: try again later"
	}
	return "correct model, models or base_url"
}
