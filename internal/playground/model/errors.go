package model

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// apiError is a failure as Anthropic's API reports it.
type apiError struct {
	Status     int
	Message    string
	RetryAfter int
}

func (e *apiError) Error() string { return strconv.Itoa(e.Status) + ": " + e.Message }

// kind is the API's name for the status, and its usual text.
func errorKind(status int) (kind, text string) {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error", "invalid x-api-key"
	case http.StatusPaymentRequired:
		return "billing_error", "Your credit balance is too low to access the Anthropic API."
	case http.StatusForbidden:
		return "permission_error", "Your API key does not have permission to use the specified resource."
	case http.StatusNotFound:
		return "not_found_error", "Not found"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large", "Request exceeds the maximum size"
	case http.StatusTooManyRequests:
		return "rate_limit_error", "This request would exceed your organization's rate limit."
	case http.StatusGatewayTimeout:
		return "timeout_error", "The request timed out"
	case 529:
		return "overloaded_error", "Overloaded"
	}
	if status < 500 {
		return "invalid_request_error", "The request is not valid"
	}
	return "api_error", "Internal server error"
}

// writeError answers with Anthropic's error envelope, or with Amazon's.
func writeError(w http.ResponseWriter, requestID string, e *apiError, amazon bool) {
	kind, text := errorKind(e.Status)
	if e.Message != "" {
		text = e.Message
	}
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	body, err := json.Marshal(struct {
		Type      string `json:"type"`
		Error     detail `json:"error"`
		RequestID string `json:"request_id"`
	}{"error", detail{kind, text}, requestID})
	if err != nil {
		panic(err) // strings always encode
	}
	if amazon {
		if body, err = json.Marshal(map[string]string{"message": text}); err != nil {
			panic(err) // strings always encode
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	w.WriteHeader(e.Status)
	_, _ = w.Write(body) // a client that left needs no error
}
