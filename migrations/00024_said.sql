-- +goose Up

-- What the model said last before it asked, which the card tells as its reason.
ALTER TABLE approvals ADD COLUMN said text NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE approvals DROP COLUMN said;
