package fila

import (
	"context"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// SetConfig sets a runtime config value, visible to hooks when this returns; an empty value deletes it.
// throttle.<key> sets a token bucket: "rate,burst".
func (c *Client) SetConfig(ctx context.Context, key, value string) error {
	request := &filav1.SetConfigRequest{Key: key, Value: value}
	plan := callPlan{about: subject{configKey: key}, repeatable: repeatable}
	_, err := call(ctx, c.connection, plan, request, c.connection.admin.SetConfig)
	return err
}

// GetConfig reads a runtime config value. It fails with ErrConfigKeyNotFound.
func (c *Client) GetConfig(ctx context.Context, key string) (string, error) {
	request := &filav1.GetConfigRequest{Key: key}
	plan := callPlan{about: subject{configKey: key}, repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.GetConfig)
	return answer.GetValue(), err
}

// ConfigEntry is a runtime config key with its value.
type ConfigEntry struct{ Key, Value string }

// ListConfig returns the values whose key starts with prefix, sorted by key.
func (c *Client) ListConfig(ctx context.Context, prefix string) ([]ConfigEntry, error) {
	request := &filav1.ListConfigRequest{Prefix: prefix}
	plan := callPlan{repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.ListConfig)
	entries := make([]ConfigEntry, len(answer.GetEntries()))
	for i, entry := range answer.GetEntries() {
		entries[i] = ConfigEntry{Key: entry.GetKey(), Value: entry.GetValue()}
	}
	return entries, err
}

// A KeyPolicyOption changes one part of a fairness key's policy.
type KeyPolicyOption func(*filav1.SetKeyPolicyRequest)

func (o KeyPolicyOption) applyToPreview(r *filav1.PreviewKeyPolicyRequest) { o(r.Policy) }

// A PreviewOption is a part of the change that PreviewKeyPolicy looks at, or the [Channel] it looks in.
type PreviewOption interface {
	applyToPreview(*filav1.PreviewKeyPolicyRequest)
}

func (o ChannelOption) applyToPreview(r *filav1.PreviewKeyPolicyRequest) { r.Channel = string(o) }

// KeyWeight weighs the key, 1 to 1000, over every other weight; 0 takes the operator's weight away again.
func KeyWeight(n uint32) KeyPolicyOption {
	return func(r *filav1.SetKeyPolicyRequest) { r.Weight = &n }
}

// KeyPaused stops or resumes deliveries of the key.
func KeyPaused(paused bool) KeyPolicyOption {
	return func(r *filav1.SetKeyPolicyRequest) { r.Paused = &paused }
}

// KeyMaxInFlight bounds the key's leased messages in a channel; 0 for no bound, also where the queue has a
// KeyCapDefault.
func KeyMaxInFlight(n uint32) KeyPolicyOption {
	return func(r *filav1.SetKeyPolicyRequest) { r.MaxInFlight = &n }
}

// KeyRate is how many messages of the key are delivered a second at most, over all channels; 0 for no rate, also where
// the queue has a KeyRateDefault.
func KeyRate(perSecond float64) KeyPolicyOption {
	return func(r *filav1.SetKeyPolicyRequest) { r.RatePerSecond = &perSecond }
}

// KeyBurst is how many messages of the key may be delivered at once after a pause, at least 1; 0 for one second's
// worth. It needs a rate.
func KeyBurst(messages float64) KeyPolicyOption {
	return func(r *filav1.SetKeyPolicyRequest) { r.Burst = &messages }
}

// KeyCapByDefault takes the operator's cap back: the queue's KeyCapDefault holds for the key again.
func KeyCapByDefault() KeyPolicyOption {
	return func(r *filav1.SetKeyPolicyRequest) { r.CapByDefault = true }
}

// KeyRateByDefault takes the operator's rate and burst back: the queue's KeyRateDefault holds for the key again.
func KeyRateByDefault() KeyPolicyOption {
	return func(r *filav1.SetKeyPolicyRequest) { r.RateByDefault = true }
}

// KeyCommitted is how many messages of the key go, a second, before those of keys that are not within theirs, over all
// channels; 0 for none, also where the queue has a KeyCommittedDefault.
func KeyCommitted(perSecond float64) KeyPolicyOption {
	return func(r *filav1.SetKeyPolicyRequest) { r.CommittedPerSecond = &perSecond }
}

// KeyCommittedByDefault takes the operator's committed rate back: the queue's KeyCommittedDefault holds for the key
// again.
func KeyCommittedByDefault() KeyPolicyOption {
	return func(r *filav1.SetKeyPolicyRequest) { r.CommittedByDefault = true }
}

// KeyComment says why the policy is changed, in at most 1,024 bytes. It is kept in the audit, and with the pause where
// the key is paused.
func KeyComment(text string) KeyPolicyOption {
	return func(r *filav1.SetKeyPolicyRequest) { r.Comment = text }
}

// SetKeyPolicy weighs, pauses, resumes, caps or slows one fairness key; what is not given stays. It returns the
// key's policy now.
func (c *Client) SetKeyPolicy(
	ctx context.Context, queue, fairnessKey string, opts ...KeyPolicyOption,
) (*filav1.SetKeyPolicyResponse, error) {
	request := &filav1.SetKeyPolicyRequest{Queue: queue, FairnessKey: fairnessKey}
	for _, opt := range opts {
		opt(request)
	}
	plan := callPlan{about: subject{queue: queue}, repeatable: repeatable}
	return call(ctx, c.connection, plan, request, c.connection.admin.SetKeyPolicy)
}

// PreviewKeyPolicy says what SetKeyPolicy would do in one channel, and does nothing: when the key's messages would go, and
// who would wait longer.
func (c *Client) PreviewKeyPolicy(
	ctx context.Context, queue, fairnessKey string, opts ...PreviewOption,
) (*filav1.PreviewKeyPolicyResponse, error) {
	request := &filav1.PreviewKeyPolicyRequest{
		Queue: queue, Policy: &filav1.SetKeyPolicyRequest{FairnessKey: fairnessKey},
	}
	for _, opt := range opts {
		opt.applyToPreview(request)
	}
	about := subject{queue: queue, channel: channelOrDefault(request.GetChannel())}
	plan := callPlan{about: about, repeatable: repeatable}
	return call(ctx, c.connection, plan, request, c.connection.admin.PreviewKeyPolicy)
}

// A SkipOption says more about SkipMessage: a [Channel], a [OnlyMessage].
type SkipOption interface {
	applyToSkip(*filav1.SkipMessageRequest)
}

func (o ChannelOption) applyToSkip(r *filav1.SkipMessageRequest) { r.Channel = string(o) }

// OnlyMessage is the id of the one message that is meant.
type OnlyMessage string

func (o OnlyMessage) applyToSkip(r *filav1.SkipMessageRequest) { r.MessageId = string(o) }

// SkipMessage makes the first message of a fairness key a dead letter, with the reason "skipped", so that those behind
// it go on; given a [OnlyMessage], only if it is that one. It is for queues whose order of keys is strict.
func (c *Client) SkipMessage(
	ctx context.Context, queue, fairnessKey string, opts ...SkipOption,
) (*filav1.SkipMessageResponse, error) {
	request := &filav1.SkipMessageRequest{Queue: queue, FairnessKey: fairnessKey}
	for _, opt := range opts {
		opt.applyToSkip(request)
	}
	about := subject{queue: queue, channel: channelOrDefault(request.GetChannel())}
	return call(ctx, c.connection, callPlan{about: about}, request, c.connection.admin.SkipMessage)
}

// An ExplainOption says more about ExplainKey: a [Channel].
type ExplainOption interface {
	applyToExplain(*filav1.ExplainKeyRequest)
}

func (o ChannelOption) applyToExplain(r *filav1.ExplainKeyRequest) { r.Channel = string(o) }

// A MessageOption says more about GetMessage and CancelMessages: a [Channel].
type MessageOption interface {
	messageChannel() string
}

func (o ChannelOption) messageChannel() string { return string(o) }

func channelOf(opts []MessageOption) string {
	channel := ""
	for _, opt := range opts {
		channel = opt.messageChannel()
	}
	return channel
}

// GetMessage says where one message is: it waits, is delayed or leased, failed, is dead, or is not known any more.
func (c *Client) GetMessage(
	ctx context.Context, queue, messageID string, opts ...MessageOption,
) (*filav1.GetMessageResponse, error) {
	return c.getMessage(ctx, &filav1.GetMessageRequest{Queue: queue, Channel: channelOf(opts), MessageId: messageID})
}

// GetMessageByDedupKey says the same of a message that was enqueued with this key.
func (c *Client) GetMessageByDedupKey(
	ctx context.Context, queue, dedupKey string, opts ...MessageOption,
) (*filav1.GetMessageResponse, error) {
	return c.getMessage(ctx, &filav1.GetMessageRequest{Queue: queue, Channel: channelOf(opts), DedupKey: dedupKey})
}

func (c *Client) getMessage(
	ctx context.Context, request *filav1.GetMessageRequest,
) (*filav1.GetMessageResponse, error) {
	about := subject{queue: request.GetQueue(), channel: channelOrDefault(request.GetChannel())}
	plan := callPlan{about: about, repeatable: repeatable}
	return call(ctx, c.connection, plan, request, c.connection.admin.GetMessage)
}

// CancelMessages takes messages back that are not done, at most 10,000 a call, and says what became of each: it waited
// and is gone, a consumer had it, whose ack is refused from now on, or the channel has no such message.
func (c *Client) CancelMessages(
	ctx context.Context, queue string, messageIDs []string, opts ...MessageOption,
) ([]filav1.CancelMessagesResponse_Outcome, error) {
	return c.cancel(
		ctx, &filav1.CancelMessagesRequest{Queue: queue, Channel: channelOf(opts), MessageIds: messageIDs})
}

// CancelByDedupKeys takes back messages that were enqueued with these keys. As CancelMessages.
func (c *Client) CancelByDedupKeys(
	ctx context.Context, queue string, dedupKeys []string, opts ...MessageOption,
) ([]filav1.CancelMessagesResponse_Outcome, error) {
	return c.cancel(
		ctx, &filav1.CancelMessagesRequest{Queue: queue, Channel: channelOf(opts), DedupKeys: dedupKeys})
}

func (c *Client) cancel(
	ctx context.Context, request *filav1.CancelMessagesRequest,
) ([]filav1.CancelMessagesResponse_Outcome, error) {
	about := subject{queue: request.GetQueue(), channel: channelOrDefault(request.GetChannel())}
	// A second run finds nothing of what the first one took back, and says so.
	plan := callPlan{about: about, repeatable: once}
	answer, err := call(ctx, c.connection, plan, request, c.connection.service.CancelMessages)
	return answer.GetOutcomes(), err
}

// ExplainKey says what holds a fairness key's next message, and where its last hour of waiting went.
func (c *Client) ExplainKey(
	ctx context.Context, queue, fairnessKey string, opts ...ExplainOption,
) (*filav1.ExplainKeyResponse, error) {
	request := &filav1.ExplainKeyRequest{Queue: queue, FairnessKey: fairnessKey}
	for _, opt := range opts {
		opt.applyToExplain(request)
	}
	about := subject{queue: queue, channel: channelOrDefault(request.GetChannel())}
	plan := callPlan{about: about, repeatable: repeatable}
	return call(ctx, c.connection, plan, request, c.connection.admin.ExplainKey)
}
