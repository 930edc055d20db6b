package main

import (
	"context"
	"strings"

	fila "github.com/fila-mq/fila/sdks/go"
	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// getMessage says where a message is that is named by its id or by its dedup key.
func getMessage(ctx context.Context, c *fila.Client, r *request) (answer, error) {
	opts := as[fila.MessageOption](r.channel())
	if r.DedupKey != "" {
		got, err := c.GetMessageByDedupKey(ctx, r.Queue, r.DedupKey, opts...)
		return plain(got), err
	}
	got, err := c.GetMessage(ctx, r.Queue, r.MessageID, opts...)
	return plain(got), err
}

// cancelMessages takes back what ids name, then what keys name, as one call of the wire does.
func cancelMessages(ctx context.Context, c *fila.Client, r *request) (answer, error) {
	opts := as[fila.MessageOption](r.channel())
	words := []string{}
	tell := func(outcomes []filav1.CancelMessagesResponse_Outcome, err error) error {
		for _, outcome := range outcomes {
			words = append(words, strings.ToLower(strings.TrimPrefix(outcome.String(), "OUTCOME_")))
		}
		return err
	}
	if len(r.MessageIDs) > 0 || len(r.DedupKeys) == 0 {
		if err := tell(c.CancelMessages(ctx, r.Queue, r.MessageIDs, opts...)); err != nil {
			return nil, err
		}
	}
	if len(r.DedupKeys) > 0 {
		if err := tell(c.CancelByDedupKeys(ctx, r.Queue, r.DedupKeys, opts...)); err != nil {
			return nil, err
		}
	}
	return answer{"outcomes": words}, nil
}
