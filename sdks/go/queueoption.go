package fila

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// A QueueOption is a setting of a queue. What is not given has its default in CreateQueue, and stays as it
// is in UpdateQueue.
type QueueOption func(*queueSettings)

type queueSettings struct {
	config filav1.QueueConfig
	paths  []string

	expectedVersion uint64
	comment         string
}

// ExpectedVersion changes the settings only if this is their version, as GetQueue tells it. Only for UpdateQueue.
func ExpectedVersion(version uint64) QueueOption {
	return func(s *queueSettings) { s.expectedVersion = version }
}

// Comment is why the settings are changed, at most 1,024 bytes; kept with their version. Only for UpdateQueue.
func Comment(text string) QueueOption {
	return func(s *queueSettings) { s.comment = text }
}

// queueOption sets one field and names it for the update's mask.
func queueOption(path string, set func(*filav1.QueueConfig)) QueueOption {
	return func(s *queueSettings) {
		set(&s.config)
		if !slices.Contains(s.paths, path) {
			s.paths = append(s.paths, path)
		}
	}
}

func settingsOf(opts []QueueOption) *queueSettings {
	s := &queueSettings{}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

func (s *queueSettings) mask() *fieldmaskpb.FieldMask { return &fieldmaskpb.FieldMask{Paths: s.paths} }

// Settings are those of a message of the API, for a program that has them so: in CreateQueue all of them, in UpdateQueue
// those at the paths, such as "max_attempts" or "retry.base_ms", and what is left out there has its default again. It
// replaces what options before it say.
func Settings(config *filav1.QueueConfig, paths ...string) QueueOption {
	return func(s *queueSettings) {
		proto.Reset(&s.config)
		proto.Merge(&s.config, config)
		s.paths = slices.Clone(paths)
	}
}

// OnEnqueueScript is Lua source that defines on_enqueue(msg); at most 64 KiB.
func OnEnqueueScript(lua string) QueueOption {
	return queueOption("on_enqueue_script", func(c *filav1.QueueConfig) { c.OnEnqueueScript = lua })
}

// OnFailureScript is Lua source that defines on_failure(msg, attempts); at most 64 KiB.
func OnFailureScript(lua string) QueueOption {
	return queueOption("on_failure_script", func(c *filav1.QueueConfig) { c.OnFailureScript = lua })
}

// VisibilityTimeout is how long a delivery is leased: 1 s to 12 h, 30 s unless set.
func VisibilityTimeout(d time.Duration) QueueOption {
	return queueOption("visibility_timeout_ms", func(c *filav1.QueueConfig) { c.VisibilityTimeoutMs = milliseconds(d) })
}

// MaxAttempts is how many failures make a message a dead letter: 20 unless set, 0 for no cap.
func MaxAttempts(n uint32) QueueOption {
	return queueOption("max_attempts", func(c *filav1.QueueConfig) { c.MaxAttempts = &n })
}

// DurableFsync answers calls on the queue after an fsync: what is answered survives a power cut.
func DurableFsync() QueueOption {
	return queueOption("durability", func(c *filav1.QueueConfig) { c.Durability = filav1.Durability_DURABILITY_FSYNC })
}

// DurableOS answers calls on the queue after the write to the operating system: what is answered survives a
// crash of the broker, not of the machine.
func DurableOS() QueueOption {
	return queueOption("durability", func(c *filav1.QueueConfig) { c.Durability = filav1.Durability_DURABILITY_OS })
}

// MaxDepth bounds the pending messages; 0 for no bound.
func MaxDepth(messages uint64) QueueOption {
	return queueOption("max_depth", func(c *filav1.QueueConfig) { c.MaxDepth = messages })
}

// MaxBytes bounds the stored bytes; 0 for no bound.
func MaxBytes(bytes uint64) QueueOption {
	return queueOption("max_bytes", func(c *filav1.QueueConfig) { c.MaxBytes = bytes })
}

// FairnessKeyHeader names the header whose value is the fairness key.
func FairnessKeyHeader(name string) QueueOption {
	return queueOption("fairness_key_header", func(c *filav1.QueueConfig) { c.FairnessKeyHeader = name })
}

// WeightHeader names the header whose value is the weight of the message's fairness key.
func WeightHeader(name string) QueueOption {
	return queueOption("weight_header", func(c *filav1.QueueConfig) { c.WeightHeader = name })
}

// Weights are weights by fairness key, 1 to 1000.
func Weights(byKey map[string]uint32) QueueOption {
	return queueOption("weights", func(c *filav1.QueueConfig) { c.Weights = byKey })
}

// CostHeader names the header whose value is the message's cost.
func CostHeader(name string) QueueOption {
	return queueOption("cost_header", func(c *filav1.QueueConfig) { c.CostHeader = name })
}

// PriorityHeader names the header whose value is the message's priority among those of its fairness key, 0 to 3. A queue
// has none while its order is strict.
func PriorityHeader(name string) QueueOption {
	return queueOption("priority_header", func(c *filav1.QueueConfig) { c.PriorityHeader = name })
}

// ThrottleKeyHeaders names the headers whose values are the message's throttle keys.
func ThrottleKeyHeaders(names ...string) QueueOption {
	return queueOption("throttle_key_headers", func(c *filav1.QueueConfig) { c.ThrottleKeyHeaders = names })
}

func retryOption(path string, set func(*filav1.RetryPolicy)) QueueOption {
	return queueOption("retry."+path, func(c *filav1.QueueConfig) {
		if c.Retry == nil {
			c.Retry = &filav1.RetryPolicy{}
		}
		set(c.Retry)
	})
}

func allOf(opts ...QueueOption) QueueOption {
	return func(s *queueSettings) {
		for _, opt := range opts {
			opt(s)
		}
	}
}

// RetryExponential makes a failed message wait base, doubled with each further failure up to cap.
func RetryExponential(base, cap time.Duration) QueueOption {
	return allOf(RetryIsExponential(), RetryBase(base), RetryCap(cap))
}

// RetryFixed makes a failed message wait always the same.
func RetryFixed(wait time.Duration) QueueOption { return allOf(RetryIsFixed(), RetryBase(wait)) }

// RetryIsExponential makes waits double, and changes no other part of the retry policy.
func RetryIsExponential() QueueOption {
	return retryOption("kind", func(r *filav1.RetryPolicy) { r.Kind = filav1.RetryPolicy_KIND_EXPONENTIAL })
}

// RetryIsFixed makes all waits the same, and changes no other part of the retry policy.
func RetryIsFixed() QueueOption {
	return retryOption("kind", func(r *filav1.RetryPolicy) { r.Kind = filav1.RetryPolicy_KIND_FIXED })
}

// RetryBase changes the first wait, and no other part of the retry policy.
func RetryBase(base time.Duration) QueueOption {
	return retryOption("base_ms", func(r *filav1.RetryPolicy) { r.BaseMs = milliseconds(base) })
}

// RetryCap changes the longest wait, and no other part of the retry policy.
func RetryCap(cap time.Duration) QueueOption {
	return retryOption("cap_ms", func(r *filav1.RetryPolicy) { r.CapMs = milliseconds(cap) })
}

// RetryJitter is the part of the wait that is random: 0 waits exactly, 1 anything from nothing to all of it.
func RetryJitter(part float64) QueueOption {
	return retryOption("jitter", func(r *filav1.RetryPolicy) { r.Jitter = part })
}

// HoldOnHookFailure makes a message whose on_enqueue failed wait until the script works again, or, given
// false, be routed by the declarative policy.
func HoldOnHookFailure(hold bool) QueueOption {
	fallback := filav1.HookFallback_HOOK_FALLBACK_POLICY
	if hold {
		fallback = filav1.HookFallback_HOOK_FALLBACK_HOLD
	}
	return queueOption("hook_fallback", func(c *filav1.QueueConfig) { c.HookFallback = fallback })
}

// StrictKeyOrder lets of each fairness key one message go at a time, in order, and a failed one keep its place; or,
// given false, several at once, and a failed one go to the back.
func StrictKeyOrder(strict bool) QueueOption {
	order := filav1.KeyOrder_KEY_ORDER_RELAXED
	if strict {
		order = filav1.KeyOrder_KEY_ORDER_STRICT
	}
	return queueOption("key_order", func(c *filav1.QueueConfig) { c.KeyOrder = order })
}

func retentionOption(path string, set func(*filav1.Retention)) QueueOption {
	return queueOption("retention."+path, func(c *filav1.QueueConfig) {
		if c.Retention == nil {
			c.Retention = &filav1.Retention{}
		}
		set(c.Retention)
	})
}

// KeepFor keeps messages this long even when every channel is done with them.
func KeepFor(d time.Duration) QueueOption {
	return retentionOption("soft_period_ms", func(r *filav1.Retention) { r.SoftPeriodMs = milliseconds(d) })
}

// KeepBytes keeps this much even when every channel is done with it.
func KeepBytes(bytes uint64) QueueOption {
	return retentionOption("soft_bytes", func(r *filav1.Retention) { r.SoftBytes = bytes })
}

// DropAfter drops messages older than this, done or not.
func DropAfter(d time.Duration) QueueOption {
	return retentionOption("hard_period_ms", func(r *filav1.Retention) { r.HardPeriodMs = milliseconds(d) })
}

// DropBeyond drops the oldest messages beyond this many bytes, done or not.
func DropBeyond(bytes uint64) QueueOption {
	return retentionOption("hard_bytes", func(r *filav1.Retention) { r.HardBytes = bytes })
}

func intakeOption(path string, set func(*filav1.Intake)) QueueOption {
	return queueOption("intake."+path, func(c *filav1.QueueConfig) {
		if c.Intake == nil {
			c.Intake = &filav1.Intake{}
		}
		set(c.Intake)
	})
}

// IntakeHeaders are the headers of an HTTP sender that become the message's, where the gateway stores a body as it is: at
// most 32 names in lower case.
func IntakeHeaders(names ...string) QueueOption {
	return intakeOption("headers", func(i *filav1.Intake) { i.Headers = names })
}

// IntakeDedupHeaders are headers of an HTTP sender: the first that it gives is the dedup key. At most 32 names in lower
// case.
func IntakeDedupHeaders(names ...string) QueueOption {
	return intakeOption("dedup_headers", func(i *filav1.Intake) { i.DedupHeaders = names })
}

func keyDefaultOption(path string, set func(*filav1.KeyDefaults)) QueueOption {
	return queueOption("key_defaults."+path, func(c *filav1.QueueConfig) {
		if c.KeyDefaults == nil {
			c.KeyDefaults = &filav1.KeyDefaults{}
		}
		set(c.KeyDefaults)
	})
}

// KeyLimit is, with a message's fairness key behind it, the name of a limit that messages of all producers need, too:
// with "tenant:", messages of the key "acme" need the limit "tenant:acme" beside those of their throttle keys. At most 64
// bytes, without "*"; empty for none.
func KeyLimit(beginning string) QueueOption {
	return queueOption("key_limit", func(c *filav1.QueueConfig) { c.KeyLimit = beginning })
}

// AllowProducerRouting lets producers say a message's fairness key, weight and cost: [FairnessKey], [Weight], [Cost].
func AllowProducerRouting(yes bool) QueueOption {
	return queueOption("allow_producer_routing", func(c *filav1.QueueConfig) { c.AllowProducerRouting = yes })
}

// KeyRateDefault is how many messages of a fairness key are delivered a second at most, over all channels, until an
// operator sets something else for the key; 0 for no rate.
func KeyRateDefault(perSecond float64) QueueOption {
	return keyDefaultOption("rate_per_second", func(d *filav1.KeyDefaults) { d.RatePerSecond = perSecond })
}

// KeyBurstDefault is how many messages of such a key may be delivered at once after a pause, at least 1; 0 for one
// second's worth. It needs a KeyRateDefault.
func KeyBurstDefault(messages float64) QueueOption {
	return keyDefaultOption("burst", func(d *filav1.KeyDefaults) { d.Burst = messages })
}

// KeyCapDefault is how many messages of such a key are leased at once in a channel at most; 0 for no cap.
func KeyCapDefault(messages uint32) QueueOption {
	return keyDefaultOption("max_in_flight", func(d *filav1.KeyDefaults) { d.MaxInFlight = messages })
}

// KeyCommittedDefault is how many messages of such a key go, a second, before those of keys that are not within theirs,
// over all channels; 0 for none.
func KeyCommittedDefault(perSecond float64) QueueOption {
	return keyDefaultOption("committed_per_second", func(d *filav1.KeyDefaults) { d.CommittedPerSecond = perSecond })
}

// Channels are made with the queue; `default` when none is named. Only for CreateQueue.
func Channels(names ...string) QueueOption {
	return queueOption("channels", func(c *filav1.QueueConfig) { c.Channels = names })
}

// DedupWindow is how long a DedupKey is remembered: 5 min unless set, at most 24 h.
func DedupWindow(d time.Duration) QueueOption {
	return queueOption("dedup_window_ms", func(c *filav1.QueueConfig) { c.DedupWindowMs = milliseconds(d) })
}

// TTLToDLQ makes dead letters of messages whose time to live is over, instead of dropping them.
func TTLToDLQ(yes bool) QueueOption {
	return queueOption("ttl_to_dlq", func(c *filav1.QueueConfig) { c.TtlToDlq = yes })
}

// Paused delivers nothing of the queue until it is false again; enqueues, acks and what is leased already go on.
func Paused(yes bool) QueueOption {
	return queueOption("paused", func(c *filav1.QueueConfig) { c.Paused = yes })
}

// PausedChannels delivers nothing in these channels until they are named no more; the others go on.
func PausedChannels(names ...string) QueueOption {
	return queueOption("paused_channels", func(c *filav1.QueueConfig) { c.PausedChannels = names })
}

// DisconnectGrace is how long after a broken connection a consumer may come back before what it held is given
// to others: 5 s unless set, 0 for at once.
func DisconnectGrace(d time.Duration) QueueOption {
	ms := milliseconds(d)
	return queueOption("disconnect_grace_ms", func(c *filav1.QueueConfig) { c.DisconnectGraceMs = &ms })
}

// ExpiresAfterIdle deletes the queue after this long without a consumer, pull or enqueue: at least 1 s, 0 for
// never.
func ExpiresAfterIdle(d time.Duration) QueueOption {
	return queueOption("expires_after_idle_ms", func(c *filav1.QueueConfig) { c.ExpiresAfterIdleMs = milliseconds(d) })
}
