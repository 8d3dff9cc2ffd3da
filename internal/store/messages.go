package store

import (
	"context"
	"fmt"
	"time"
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

// WroteBelow reports whether somebody has written in a turn's thread below the newest message
// that shows it, if that one was posted after from and before to: times of this machine, which
// Slack's clock is taken to agree with. What was written to somebody else is not known here.
func (s *Store) WroteBelow(ctx context.Context, k ThreadKey, turnID int64, from, to time.Time) (wrote bool, err error) {
	// A ts is a number of seconds with six decimals, of ten digits until the year 2286.
	ts := func(t time.Time) string { return fmt.Sprintf("%d.%06d", max(0, t.Unix()), t.Nanosecond()/1000) }
	err = s.pool.QueryRow(ctx, `
		SELECT EXISTS (
			SELECT FROM (SELECT max(m.ts) AS ts FROM messages m WHERE m.turn_id = $1) newest
			JOIN inbox e ON e.team_id = $2 AND e.channel_id = $3 AND e.thread_ts = $4 AND e.kind = 'message' AND e.ts > newest.ts
			WHERE newest.ts > $5 AND newest.ts < $6)`, turnID, k.TeamID, k.ChannelID, k.ThreadTS, ts(from), ts(to)).Scan(&wrote)
	if err != nil {
		return false, fmt.Errorf("read who has written below turn %d: %w", turnID, err)
	}
	return wrote, nil
}

// CardCopy is a card as a direct message to somebody who may decide about it.
type CardCopy struct {
	CardID    string
	UserID    string
	ChannelID string // of the direct message
	TS        string // empty until it is posted
	CreatedAt time.Time
}

// AddCardCopies records that people are to be sent a card, before they are. Who has been
// recorded already is left out.
func (s *Store) AddCardCopies(ctx context.Context, copies []CardCopy) error {
	users, channels := make([]string, len(copies)), make([]string, len(copies))
	for i, c := range copies {
		users[i], channels[i] = c.UserID, c.ChannelID
	}
	if len(copies) == 0 {
		return nil
	}
	_, err := s.pool.Exec(ctx, `
		INSERT INTO card_copies (card_id, user_id, channel_id)
		SELECT $1, u, c FROM unnest($2::text[], $3::text[]) AS t (u, c)
		ON CONFLICT (card_id, user_id) DO NOTHING`, copies[0].CardID, users, channels)
	if err != nil {
		return fmt.Errorf("record the copies of a card: %w", err)
	}
	return nil
}

// CardCopies lists a card's copies, by person.
func (s *Store) CardCopies(ctx context.Context, cardID string) ([]CardCopy, error) {
	out, err := collect[CardCopy](s.pool.Query(ctx, `
		SELECT card_id, user_id, channel_id, ts, created_at FROM card_copies WHERE card_id = $1 ORDER BY user_id`, cardID))
	if err != nil {
		return nil, fmt.Errorf("read the copies of a card: %w", err)
	}
	return out, nil
}

// SaveCardCopy records where a copy was posted.
func (s *Store) SaveCardCopy(ctx context.Context, c CardCopy) error {
	_, err := s.pool.Exec(ctx, `UPDATE card_copies SET ts = $3 WHERE card_id = $1 AND user_id = $2`, c.CardID, c.UserID, c.TS)
	if err != nil {
		return fmt.Errorf("record a card's copy: %w", err)
	}
	return nil
}
