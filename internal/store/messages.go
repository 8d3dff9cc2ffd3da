package store

import (
	"context"
	"fmt"
)

// PostedMessage is a Slack message of ours.
type PostedMessage struct {
	ChannelID string
	TS        string
	Page      int
}

// SaveTurnMessage records the message that shows a page of a turn.
func (s *Store) SaveTurnMessage(ctx context.Context, turnID int64, m PostedMessage) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO messages (turn_id, page, channel_id, ts) VALUES ($1, $2, $3, $4)
		ON CONFLICT (turn_id, page) DO UPDATE SET ts = excluded.ts`, turnID, m.Page, m.ChannelID, m.TS)
	if err != nil {
		return fmt.Errorf("record the message of turn %d: %w", turnID, err)
	}
	return nil
}

// SaveApprovalMessage records the card of an approval.
func (s *Store) SaveApprovalMessage(ctx context.Context, approvalID string, m PostedMessage) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO messages (approval_id, page, channel_id, ts) VALUES ($1, $2, $3, $4)
		ON CONFLICT (approval_id, page) DO UPDATE SET ts = excluded.ts`, approvalID, m.Page, m.ChannelID, m.TS)
	if err != nil {
		return fmt.Errorf("record the card of an approval: %w", err)
	}
	return nil
}

// TurnMessages returns the messages that show a turn, by page.
func (s *Store) TurnMessages(ctx context.Context, turnID int64) ([]PostedMessage, error) {
	out, err := collect[PostedMessage](s.pool.Query(ctx, `
		SELECT channel_id, ts, page FROM messages WHERE turn_id = $1 ORDER BY page`, turnID))
	if err != nil {
		return nil, fmt.Errorf("read the messages of turn %d: %w", turnID, err)
	}
	return out, nil
}
