package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	fila "github.com/fila-mq/fila/sdks/go"
)

var errUnsupported = errors.New("unsupported")

// request is a line of the protocol: every argument of every operation. What was not given stays nil or zero.
type request struct {
	ID       int    `json:"id"`
	Op       string `json:"op"`
	Client   string `json:"client"`
	Target   string `json:"target"`
	Consumer string `json:"consumer"`
	Request  int    `json:"request"`

	Options map[string]json.RawMessage `json:"options"`
	Config  map[string]json.RawMessage `json:"config"`

	Queue       string          `json:"queue"`
	Channel     *string         `json:"channel"`
	Messages    []newMessage    `json:"messages"`
	Prefetch    json.RawMessage `json:"prefetch"`
	StopWhenIdS *float64        `json:"stop_when_idle_s"`
	Name        *string         `json:"name"`
	RenewalMs   *int64          `json:"max_lease_renewal_ms"`
	Count       *uint64         `json:"count"`
	TimeoutMs   *int64          `json:"timeout_ms"`
	MaxMessages *int            `json:"max_messages"`
	WaitMs      *int64          `json:"wait_ms"`

	Handle     int      `json:"handle"`
	Handles    []int    `json:"handles"`
	MessageID  string   `json:"message_id"`
	MessageIDs []string `json:"message_ids"`
	DedupKeys  []string `json:"dedup_keys"`
	Error      string   `json:"error"`
	DeadLetter bool     `json:"dead_letter"`
	Parent     bool     `json:"parent"`
	ExtendMs   int64    `json:"extend_ms"`

	RetryAfterMs int64  `json:"retry_after_ms"`
	ThrottleKey  string `json:"throttle_key"`

	Key        string  `json:"key"`
	Value      string  `json:"value"`
	Prefix     string  `json:"prefix"`
	Containing string  `json:"containing"`
	Fairness   *string `json:"fairness_key"`

	MaxKeys       *uint32         `json:"max_keys"`
	MaxTroubles   uint32          `json:"max_troubles"`
	AfterOffset   *uint64         `json:"after_offset"`
	RatePerSecond *float64        `json:"rate_per_second"`
	Start         json.RawMessage `json:"start"`
	Offset        *uint64         `json:"offset"`
	TimeMs        *int64          `json:"time_ms"`
	Weight        *uint32         `json:"weight"`
	Paused        *bool           `json:"paused"`
	MaxInFlight   *uint32         `json:"max_in_flight"`
	FromOffset    uint64          `json:"from_offset"`
	ToOffset      uint64          `json:"to_offset"`
	FromTimeMs    *int64          `json:"from_time_ms"`
	ToTimeMs      *int64          `json:"to_time_ms"`

	CommittedPerSecond *float64 `json:"committed_per_second"`
	CommittedByDefault bool     `json:"committed_by_default"`

	MaxBatch    *uint32 `json:"max_batch"`
	ExpiresIdle *int64  `json:"expires_after_idle_ms"`

	ExpectedVersion uint64   `json:"expected_version"`
	Comment         string   `json:"comment"`
	ValidateOnly    bool     `json:"validate_only"`
	Force           bool     `json:"force"`
	Offsets         []uint64 `json:"offsets"`
	Burst           *float64 `json:"burst"`
	CapByDefault    bool     `json:"cap_by_default"`
	RateByDefault   bool     `json:"rate_by_default"`
	Before          *uint64  `json:"before"`
	Limit           *uint32  `json:"limit"`
	Number          uint64   `json:"number"`
	Last            uint32   `json:"last"`

	Queues        []string `json:"queues"`
	Keys          []string `json:"keys"`
	Order         string   `json:"order"`
	Top           *uint32  `json:"top"`
	MaxChanges    int      `json:"max_changes"`
	Kinds         []string `json:"kinds"`
	AfterPosition uint64   `json:"after_position"`
	Follow        bool     `json:"follow"`
	MaxEvents     int      `json:"max_events"`

	Kind        string            `json:"kind"`
	Filter      *deadLetterFilter `json:"filter"`
	OperationID string            `json:"operation_id"`

	Schedule  string           `json:"schedule"`
	Settings  scheduleSettings `json:"settings"`
	PageSize  uint32           `json:"page_size"`
	PageToken string           `json:"page_token"`

	Rates     []limitPart `json:"rates"`
	Budget    *limitPart  `json:"budget"`
	Learn     *limitPart  `json:"learn"`
	Shadow    bool        `json:"shadow"`
	After     string      `json:"after"`
	MaxLimits uint32      `json:"max_limits"`
	Spent     float64     `json:"spent"`

	KeyID          string   `json:"key_id"`
	ExpiresAfterMs int64    `json:"expires_after_ms"`
	OverlapMs      int64    `json:"overlap_ms"`
	AsTenant       string   `json:"as_tenant"`
	LinkID         string   `json:"link_id"`
	Right          string   `json:"right"`
	Produce        []string `json:"produce"`
	Consume        []string `json:"consume"`
	Manage         []string `json:"manage"`
	View           []string `json:"view"`
	Cancel         []string `json:"cancel"`
	Admin          bool     `json:"admin"`

	MessagesPerSecond float64 `json:"messages_per_second"`
	BytesPerSecond    float64 `json:"bytes_per_second"`
	Connections       uint32  `json:"connections"`
	Streams           uint32  `json:"streams"`
	InFlight          uint32  `json:"in_flight"`
	StoredBytes       uint64  `json:"stored_bytes"`

	newMessage
}

// deadLetterFilter says which dead letters an operation means.
type deadLetterFilter struct {
	FairnessKey   *string `json:"fairness_key"`
	Reason        *string `json:"reason"`
	Error         *string `json:"error"`
	DiedFromMs    *int64  `json:"died_from_ms"`
	DiedBeforeMs  *int64  `json:"died_before_ms"`
	SourceChannel *string `json:"source_channel"`
}

// newMessage is a message to enqueue.
type newMessage struct {
	Payload     []byte            `json:"payload"`
	Headers     map[string]string `json:"headers"`
	DelayMs     *int64            `json:"delay_ms"`
	DeliverAtMs *int64            `json:"deliver_at_ms"`
	TTLMs       *int64            `json:"ttl_ms"`
	DedupKey    string            `json:"dedup_key"`
	Replace     bool              `json:"replace"`
	MaxWaitMs   int64             `json:"max_wait_ms"`
	FairnessKey string            `json:"fairness_key"`
	Weight      uint32            `json:"weight"`
	Cost        float64           `json:"cost"`
	Priority    *uint32           `json:"priority"`
}

func newRequest(line []byte) (*request, error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	r := &request{}
	if err := decoder.Decode(r); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnsupported, err)
	}
	return r, nil
}

func ms(n int64) time.Duration        { return time.Duration(n) * time.Millisecond }
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// single is the message of an enqueue, some of whose words other calls have, too.
func (r *request) single() fila.NewMessage {
	made := r.message()
	if r.Fairness != nil {
		made.FairnessKey = *r.Fairness
	}
	if r.Weight != nil {
		made.Weight = *r.Weight
	}
	return made
}

func (m *newMessage) message() fila.NewMessage {
	made := fila.NewMessage{
		Headers: m.Headers, Payload: m.Payload, DedupKey: m.DedupKey, Replace: m.Replace, MaxWait: ms(m.MaxWaitMs),
		FairnessKey: m.FairnessKey, Weight: m.Weight, Cost: m.Cost, Priority: m.Priority,
	}
	if m.DelayMs != nil {
		made.Delay = ms(*m.DelayMs)
	}
	if m.DeliverAtMs != nil {
		made.DeliverAt = time.UnixMilli(*m.DeliverAtMs)
	}
	if m.TTLMs != nil {
		// In Go 0 is no time to live at all; one that is over is negative.
		made.TTL = max(ms(*m.TTLMs), -1)
		if made.TTL == 0 {
			made.TTL = -1
		}
	}
	return made
}

// channel is the option that names the channel, if one was given.
func (r *request) channel() []fila.ChannelOption {
	if r.Channel == nil {
		return nil
	}
	return []fila.ChannelOption{fila.Channel(*r.Channel)}
}

// as turns options into those of one call.
func as[To any, From any](opts []From) []To {
	turned := make([]To, len(opts))
	for i, opt := range opts {
		turned[i] = any(opt).(To)
	}
	return turned
}

func decode[T any](raw json.RawMessage) (T, error) {
	var value T
	err := json.Unmarshal(raw, &value)
	return value, err
}
