package model

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"deckhand/internal/price"
)

// usage is the token usage of one call, in the shape of the Messages API.
type usage struct {
	InputTokens              int            `json:"input_tokens"`
	CacheCreationInputTokens int            `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int            `json:"cache_read_input_tokens"`
	CacheCreation            cacheCreation  `json:"cache_creation"`
	OutputTokens             int            `json:"output_tokens"`
	ServerToolUse            *serverToolUse `json:"server_tool_use,omitempty"`
	ServiceTier              string         `json:"service_tier"`
	// Speed and InferenceGeo decide surcharges: fast mode, and answers from the US alone.
	Speed        string `json:"speed,omitempty"`
	InferenceGeo string `json:"inference_geo,omitempty"`
}

type cacheCreation struct {
	Ephemeral5m int `json:"ephemeral_5m_input_tokens"`
	Ephemeral1h int `json:"ephemeral_1h_input_tokens"`
}

type serverToolUse struct {
	WebSearchRequests int `json:"web_search_requests"`
}

// opening is the usage that a stream starts with: the prompt's, and one token
// of the answer, or more when more is known to have been sent.
func (u usage) opening(output int) usage {
	u.OutputTokens = max(min(1, u.OutputTokens), output)
	u.ServerToolUse = nil
	return u
}

// priced is the usage as prices are applied to it.
func (u usage) priced() price.Usage {
	p := price.Usage{
		Input: int64(u.InputTokens), Output: int64(u.OutputTokens), CacheRead: int64(u.CacheReadInputTokens),
		CacheWrite5m: int64(u.CacheCreationInputTokens - u.CacheCreation.Ephemeral1h), CacheWrite1h: int64(u.CacheCreation.Ephemeral1h),
		Fast: u.Speed == "fast", US: u.InferenceGeo == "us",
	}
	if u.ServerToolUse != nil {
		p.WebSearches = int64(u.ServerToolUse.WebSearchRequests)
	}
	return p
}

// override lays the fields named in raw over u and keeps the cache creation
// fields consistent with each other.
func (u usage) override(raw json.RawMessage) (usage, error) {
	out := u
	var named map[string]json.RawMessage
	if err := json.Unmarshal(raw, &named); err != nil {
		return u, fmt.Errorf("decode usage: %w", err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return u, fmt.Errorf("decode usage: %w", err)
	}
	_, total := named["cache_creation_input_tokens"]
	_, parts := named["cache_creation"]
	switch {
	case parts:
		if sub := map[string]json.RawMessage(nil); json.Unmarshal(named["cache_creation"], &sub) == nil {
			if _, ok := sub["ephemeral_5m_input_tokens"]; !ok {
				out.CacheCreation.Ephemeral5m = 0
			}
			if _, ok := sub["ephemeral_1h_input_tokens"]; !ok {
				out.CacheCreation.Ephemeral1h = 0
			}
		}
		out.CacheCreationInputTokens = out.CacheCreation.Ephemeral5m + out.CacheCreation.Ephemeral1h
	case total:
		out.CacheCreation = cacheCreation{Ephemeral5m: out.CacheCreationInputTokens}
	}
	return out, nil
}

// tokensIn estimates the tokens of n bytes of text.
func tokensIn(n int) int { return (n + 3) / 4 }

// segment is a piece of a prompt that caching looks at as a whole.
type segment struct {
	key    [sha256.Size]byte // hash of the prompt up to and with this segment
	tokens int
	ttl    string // set when the client put a cache breakpoint here
}

// segments cuts a request into what the API caches, in its order: tools,
// system, messages.
func (r *request) segments() []segment {
	var out []segment
	var prev [sha256.Size]byte
	add := func(kind string, size int, ttl string, parts ...string) {
		h := sha256.New()
		h.Write(prev[:])
		h.Write([]byte(kind))
		for _, p := range parts {
			_, _ = fmt.Fprintf(h, "%d:%s", len(p), p) // a hash never fails
		}
		prev = [sha256.Size]byte(h.Sum(nil))
		out = append(out, segment{key: prev, tokens: tokensIn(size), ttl: ttl})
	}
	for _, t := range r.Tools {
		add("tool", len(t.raw), t.ttl, t.Name, string(t.raw))
	}
	for _, b := range r.System {
		add("system", len(b.Text), b.Cache.lifetime(), b.Text)
	}
	for _, m := range r.Messages {
		for _, b := range m.Content {
			size := len(b.Text) + len(b.Thinking) + len(b.Name) + len(b.Input)
			parts := []string{b.Type, b.Text, b.Thinking, b.ID, b.Name, string(b.Input), b.ToolUseID}
			for _, c := range b.Content {
				size += len(c.Text)
				parts = append(parts, c.Text)
				if c.Type == "image" || c.Type == "document" {
					size += 4 * imageTokens
				}
			}
			if b.Type == "image" || b.Type == "document" {
				size += 4 * imageTokens
				parts = append(parts, fmt.Sprint(b.size))
			}
			add(m.Role, size, b.Cache.lifetime(), parts...)
		}
	}
	return out
}

// imageTokens is what an image or a document page is taken to cost.
const imageTokens = 1500

// promptTokens counts the whole prompt, as count_tokens answers it.
func (r *request) promptTokens() int {
	n := 0
	for _, s := range r.segments() {
		n += s.tokens
	}
	return max(n, 1)
}

// promptCache remembers, for one session, the prompts that are cached. It
// never forgets by time, so that the same calls always count the same.
type promptCache struct {
	seen map[[sha256.Size]byte]bool
}

// maxCached bounds the memory of one session's cache; beyond it everything is
// written anew, as after an eviction.
const maxCached = 4096

// count prices the prompt: what was cached before is read, what stands before
// the last breakpoint is written, the rest is plain input.
func (c *promptCache) count(segs []segment) usage {
	var u usage
	u.ServiceTier = "standard"
	hit, last := -1, -1
	for i, s := range segs {
		if s.ttl != "" {
			last = i
		}
		if c.seen[s.key] {
			hit = i
		}
	}
	ttl := ""
	write := make([]string, len(segs))
	for i := last; i >= 0; i-- {
		if segs[i].ttl != "" {
			ttl = segs[i].ttl
		}
		write[i] = ttl
	}
	for i, s := range segs {
		switch {
		case i <= hit && last >= 0:
			u.CacheReadInputTokens += s.tokens
		case i <= last && write[i] == "1h":
			u.CacheCreation.Ephemeral1h += s.tokens
		case i <= last:
			u.CacheCreation.Ephemeral5m += s.tokens
		default:
			u.InputTokens += s.tokens
		}
	}
	u.CacheCreationInputTokens = u.CacheCreation.Ephemeral5m + u.CacheCreation.Ephemeral1h
	u.InputTokens = max(u.InputTokens, 1)
	if c.seen == nil {
		c.seen = map[[sha256.Size]byte]bool{}
	}
	if len(c.seen) > maxCached {
		clear(c.seen)
	}
	for i := 0; i <= last; i++ {
		c.seen[segs[i].key] = true
	}
	return u
}
