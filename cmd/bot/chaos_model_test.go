package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/internal/judge"
)

// overheard stands before the playground's model and writes down what the judge needs of
// each call: what the conversation held, and which tools the answer calls.
type overheard struct {
	moment func(string)

	mu   sync.Mutex
	file *os.File
}

// overhear returns its address, and how to break its connections.
func overhear(t testing.TB, model, path string, moment func(string)) (address string, cut func()) {
	t.Helper()
	target, err := url.Parse(model)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	o := &overheard{moment: moment, file: file}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { o.pass(proxy, w, r) }))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		_ = file.Close()
	})
	return server.URL, server.CloseClientConnections
}

// told is in an answer that says to its end what it used.
var told = regexp.MustCompile(`"type":"message_delta".*"output_tokens"|^\{"model".*"output_tokens"`)

var askedFor = regexp.MustCompile(`say: (answer-\d{4})`)

func (o *overheard) pass(proxy *httputil.ReverseProxy, w http.ResponseWriter, r *http.Request) {
	call := judge.ModelCall{At: time.Now(), Session: r.Header.Get("X-Claude-Code-Session-Id")}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var asked struct {
		Tools []json.RawMessage `json:"tools"`
	}
	_ = json.Unmarshal(body, &asked) // what is no JSON has no tools
	call.Main = len(asked.Tools) > 0 && !bytes.Contains(body, []byte("Your task is to create a detailed summary"))
	for _, found := range askedFor.FindAllStringSubmatch(string(body), -1) {
		call.Seen = append(call.Seen, found[1])
	}
	o.moment(whenAsked)
	heard := &hearing{ResponseWriter: w}
	defer func() {
		o.moment(whenAnswered)
		call.Ended, call.Request = time.Now(), heard.Header().Get("Request-Id")
		call.Status, call.Uses, call.Told = heard.status, toolUses(heard.copy.Bytes()), told.Match(heard.copy.Bytes())
		line, err := json.Marshal(call)
		if err != nil {
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		_, _ = o.file.Write(append(line, '\n'))
	}()
	proxy.ServeHTTP(heard, r)
}

// hearing keeps a copy of an answer.
type hearing struct {
	http.ResponseWriter
	status int
	copy   bytes.Buffer
}

func (h *hearing) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h *hearing) WriteHeader(status int) {
	h.status = status
	h.ResponseWriter.WriteHeader(status)
}

func (h *hearing) Write(b []byte) (int, error) {
	h.copy.Write(b)
	return h.ResponseWriter.Write(b)
}

// toolUses are the tools that an answer calls, streamed or not, as far as it came.
func toolUses(stream []byte) (out []judge.ToolUse) {
	var whole struct {
		Content []struct {
			Type, ID string
			Input    json.RawMessage
		}
	}
	if json.Unmarshal(stream, &whole) == nil {
		for _, b := range whole.Content {
			if b.Type == "tool_use" {
				out = append(out, judge.ToolUse{ID: b.ID, Input: string(b.Input)})
			}
		}
		return out
	}
	for line := range strings.Lines(string(stream)) {
		data, ok := strings.CutPrefix(line, "data: ")
		var e struct {
			Block struct {
				Type, ID string
			} `json:"content_block"`
			Delta struct {
				JSON string `json:"partial_json"`
			}
		}
		if !ok || json.Unmarshal([]byte(data), &e) != nil {
			continue
		}
		if e.Block.Type == "tool_use" {
			out = append(out, judge.ToolUse{ID: e.Block.ID})
		}
		if len(out) > 0 {
			out[len(out)-1].Input += e.Delta.JSON
		}
	}
	return out
}
