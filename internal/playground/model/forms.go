package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"
)

// form is how a call is written: Anthropic's own way, Amazon Bedrock's or Google Vertex
// AI's. Those name the model in the path, and Bedrock's answers come in frames.
type form struct {
	count  bool
	model  string // empty: the body names it
	stream bool   // besides what the body says
	frames bool   // Amazon's event stream, and its errors
}

var (
	bedrockPath = regexp.MustCompile(`/model/([^/]+)/(invoke|invoke-with-response-stream|count-tokens)$`)
	vertexPath  = regexp.MustCompile(`/publishers/anthropic/models/([^/]+):(rawPredict|streamRawPredict)$`)
)

// formOf tells how a path asks; false if it is none of the API's.
func formOf(u *url.URL) (form, bool) {
	path := u.EscapedPath()
	if m := bedrockPath.FindStringSubmatch(path); m != nil {
		model, err := url.PathUnescape(m[1])
		return form{model: model, stream: m[2] == "invoke-with-response-stream", count: m[2] == "count-tokens", frames: true}, err == nil
	}
	if m := vertexPath.FindStringSubmatch(path); m != nil {
		if m[1] == "count-tokens" {
			return form{count: true}, true
		}
		return form{model: m[1], stream: m[2] == "streamRawPredict"}, true
	}
	_, api, _ := strings.Cut(path, "/v1/")
	return form{count: api == "messages/count_tokens"}, api == "messages" || api == "messages/count_tokens"
}

// read decodes the body of a call.
func (f form) read(body []byte) (request, error) {
	var req request
	if err := json.Unmarshal(body, &req); err != nil {
		return req, &apiError{Status: http.StatusBadRequest, Message: "The request body is not valid JSON: " + err.Error()}
	}
	if f.model != "" {
		req.Model, req.Stream = f.model, f.stream || req.Stream
	}
	return req, nil
}

// frame is an event of Bedrock's stream.
func frame(data []byte) ([]byte, error) {
	payload, err := json.Marshal(struct {
		Bytes []byte `json:"bytes"`
	}{data})
	if err != nil {
		return nil, fmt.Errorf("encode a frame: %w", err)
	}
	var out bytes.Buffer
	m := eventstream.Message{Payload: payload}
	for name, value := range map[string]string{
		eventstreamapi.MessageTypeHeader: eventstreamapi.EventMessageType, eventstreamapi.EventTypeHeader: "chunk", eventstreamapi.ContentTypeHeader: "application/json",
	} {
		m.Headers.Set(name, eventstream.StringValue(value))
	}
	if err := eventstream.NewEncoder().Encode(&out, m); err != nil {
		return nil, fmt.Errorf("encode a frame: %w", err)
	}
	return out.Bytes(), nil
}
