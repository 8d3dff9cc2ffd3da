package claude

import "math"

// TokenUsage counts the tokens of one call of the model.
type TokenUsage struct {
	Input, Output, CacheRead int64
	// CacheWrite is everything written to the cache; CacheWrite5m and
	// CacheWrite1h are its parts where the CLI tells them apart.
	CacheWrite, CacheWrite5m, CacheWrite1h int64
	WebSearches                            int64
}

// Usage is a running total: of a process since it started, or since the
// session began, as [Process.Baseline] and [Result] report it.
type Usage struct {
	// TotalMicroUSD is millionths of a US dollar, rounded from the CLI's float.
	TotalMicroUSD int64
	// Models is by the model's full name.
	Models map[string]ModelUsage
}

// ModelUsage is one model's share of a Usage, or of a difference of two.
type ModelUsage struct {
	Input, Output, CacheRead int64
	// CacheWrite is everything written to the cache; CacheWrite5m and
	// CacheWrite1h are its parts where the CLI tells them apart.
	CacheWrite, CacheWrite5m, CacheWrite1h int64
	WebSearches                            int64
	MicroUSD                               int64
}

// CacheWrites splits CacheWrite by how long it lives. What the CLI does not tell
// apart (all of it before 2.1.329, and what a response gave no duration for)
// counts as 5 minutes, which is how the CLI prices it.
func (u ModelUsage) CacheWrites() (short, long int64) {
	all := max(u.CacheWrite, u.CacheWrite5m+u.CacheWrite1h)
	return all - u.CacheWrite1h, u.CacheWrite1h
}

// microUSD rounds dollars to millionths.
func microUSD(usd float64) int64 {
	if math.IsNaN(usd) || math.Abs(usd) > 1e12 {
		return 0
	}
	return int64(math.Round(usd * 1e6))
}

// zero reports whether nothing was used.
func (u ModelUsage) zero() bool { return u == ModelUsage{} }

// minus returns u − v, each token count at least 0: a count never falls within
// an epoch, and where a version forgets one, nothing is taken back.
func (u ModelUsage) minus(v ModelUsage) ModelUsage {
	return ModelUsage{
		Input:        max(0, u.Input-v.Input),
		Output:       max(0, u.Output-v.Output),
		CacheRead:    max(0, u.CacheRead-v.CacheRead),
		CacheWrite:   max(0, u.CacheWrite-v.CacheWrite),
		CacheWrite5m: max(0, u.CacheWrite5m-v.CacheWrite5m),
		CacheWrite1h: max(0, u.CacheWrite1h-v.CacheWrite1h),
		WebSearches:  max(0, u.WebSearches-v.WebSearches),
		MicroUSD:     u.MicroUSD - v.MicroUSD,
	}
}

func (c *cursor) tokenUsage() TokenUsage {
	var u TokenUsage
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		switch string(k) {
		case "input_tokens":
			u.Input = c.integer()
		case "output_tokens":
			u.Output = c.integer()
		case "cache_read_input_tokens":
			u.CacheRead = c.integer()
		case "cache_creation_input_tokens":
			u.CacheWrite = c.integer()
		case "cache_creation":
			for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
				switch string(k) {
				case "ephemeral_5m_input_tokens":
					u.CacheWrite5m = c.integer()
				case "ephemeral_1h_input_tokens":
					u.CacheWrite1h = c.integer()
				default:
					c.skip()
				}
			}
		case "server_tool_use":
			for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
				if string(k) == "web_search_requests" {
					u.WebSearches = c.integer()
				} else {
					c.skip()
				}
			}
		default:
			c.skip()
		}
	}
	return u
}

// modelUsage takes the object that maps models to their running totals.
func (c *cursor) modelUsage() map[string]ModelUsage {
	var out map[string]ModelUsage
	for name, ok := c.firstKey(); ok; name, ok = c.nextKey() {
		model := string(name)
		var u ModelUsage
		for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
			switch string(k) {
			case "inputTokens", "input_tokens":
				u.Input = c.integer()
			case "outputTokens", "output_tokens":
				u.Output = c.integer()
			case "cacheReadInputTokens", "cache_read_input_tokens":
				u.CacheRead = c.integer()
			case "cacheCreationInputTokens", "cache_creation_input_tokens":
				u.CacheWrite = c.integer()
			case "cacheCreationEphemeral5mInputTokens":
				u.CacheWrite5m = c.integer()
			case "cacheCreationEphemeral1hInputTokens":
				u.CacheWrite1h = c.integer()
			case "webSearchRequests", "web_search_requests":
				u.WebSearches = c.integer()
			case "costUSD", "cost_usd":
				u.MicroUSD = microUSD(c.float())
			default:
				c.skip()
			}
		}
		if out == nil {
			out = make(map[string]ModelUsage)
		}
		out[model] = u
	}
	return out
}
