package claude

import (
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

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

func readTokenUsage(dec *jsontext.Decoder, u *TokenUsage) error {
	var in struct {
		InputTokens, OutputTokens, CacheReadInputTokens, CacheCreationInputTokens int64
		CacheCreation                                                             struct {
			Short int64 `json:"ephemeral_5m_input_tokens"`
			Long  int64 `json:"ephemeral_1h_input_tokens"`
		}
		ServerToolUse struct{ WebSearchRequests int64 }
	}
	err := unmarshalNext(dec, &in)
	*u = TokenUsage{
		Input: in.InputTokens, Output: in.OutputTokens, CacheRead: in.CacheReadInputTokens, CacheWrite: in.CacheCreationInputTokens,
		CacheWrite5m: in.CacheCreation.Short, CacheWrite1h: in.CacheCreation.Long, WebSearches: in.ServerToolUse.WebSearchRequests,
	}
	return err
}

func readModelUsage(dec *jsontext.Decoder, u *ModelUsage) error {
	var in struct {
		InputTokens, OutputTokens, CacheReadInputTokens, CacheCreationInputTokens int64
		CacheCreationEphemeral5mInputTokens, CacheCreationEphemeral1hInputTokens  int64
		WebSearchRequests                                                         int64
		CostUSD                                                                   float64
	}
	err := unmarshalNext(dec, &in)
	*u = ModelUsage{
		Input: in.InputTokens, Output: in.OutputTokens, CacheRead: in.CacheReadInputTokens, CacheWrite: in.CacheCreationInputTokens,
		CacheWrite5m: in.CacheCreationEphemeral5mInputTokens, CacheWrite1h: in.CacheCreationEphemeral1hInputTokens,
		WebSearches: in.WebSearchRequests, MicroUSD: microUSD(in.CostUSD),
	}
	return err
}
