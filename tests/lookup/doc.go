// Package lookup runs lookup joins against a real database: exact results through failures and checkpoints, one round
// trip per batch, and what a missing table or a dead server says.
package lookup
