package main

import (
	"encoding/json"
	"fmt"

	fila "github.com/fila-mq/fila/sdks/go"
	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// connectOptions translates the protocol's options to the SDK's.
func connectOptions(given map[string]json.RawMessage, events func(fila.ConnectionEvent)) ([]fila.Option, error) {
	opts := []fila.Option{fila.WithConnectionEvents(events)}
	frameMessages, frameBytes := 200, 1<<20
	var certificate, key string
	for name, raw := range given {
		number, notANumber := decode[float64](raw)
		switch name {
		case "connect_timeout_s":
			opts = append(opts, fila.WithConnectTimeout(seconds(number)))
		case "call_timeout_s":
			opts = append(opts, fila.WithCallTimeout(seconds(number)))
		case "retry_for_s":
			opts = append(opts, fila.WithRetryFor(seconds(number)))
		case "reconnect_for_s":
			opts = append(opts, fila.WithReconnectFor(seconds(number)))
		case "wait_when_overloaded_s":
			opts = append(opts, fila.WithWaitWhenOverloaded(seconds(number)))
		case "linger_ms":
			opts = append(opts, fila.WithLinger(seconds(number/1000)))
		case "frame_messages_max":
			frameMessages = int(number)
		case "frame_bytes_max":
			frameBytes = int(number)
		case "frames_in_flight_max":
			opts = append(opts, fila.WithFramesInFlight(int(number)))
		case "waiting_bytes_max":
			opts = append(opts, fila.WithWaitingBytes(int(number)))
		case "batching":
			notANumber = nil
			if string(raw) == "false" {
				opts = append(opts, fila.WithoutBatching())
			}
		case "prefetch":
			if notANumber == nil {
				opts = append(opts, fila.WithPrefetch(int(number)))
			}
			notANumber = nil
		case "api_key":
			key, err := decode[string](raw)
			notANumber = err
			opts = append(opts, fila.WithAPIKey(key))
		case "ca_file":
			notANumber = text(raw, func(file string) { opts = append(opts, fila.WithCA(file)) })
		case "server_name":
			notANumber = text(raw, func(name string) { opts = append(opts, fila.WithServerName(name)) })
		case "cert_file":
			notANumber = text(raw, func(file string) { certificate = file })
		case "key_file":
			notANumber = text(raw, func(file string) { key = file })
		default:
			return nil, fmt.Errorf("%w: option %s", errUnsupported, name)
		}
		if notANumber != nil {
			return nil, fmt.Errorf("%w: option %s: %w", errUnsupported, name, notANumber)
		}
	}
	if certificate != "" {
		opts = append(opts, fila.WithClientCertificate(certificate, key))
	}
	return append(opts, fila.WithFrame(frameMessages, frameBytes)), nil
}

func text(raw json.RawMessage, use func(string)) error {
	given, err := decode[string](raw)
	if err == nil {
		use(given)
	}
	return err
}

// queueOptions translates the fields of a QueueConfig to the SDK's options.
func queueOptions(config map[string]json.RawMessage) ([]fila.QueueOption, error) {
	var opts []fila.QueueOption
	for name, raw := range config {
		translate, known := queueOptionByField[name]
		if !known {
			return nil, fmt.Errorf("%w: queue setting %s", errUnsupported, name)
		}
		more, err := translate(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: queue setting %s: %w", errUnsupported, name, err)
		}
		opts = append(opts, more...)
	}
	return opts, nil
}

type translation func(json.RawMessage) ([]fila.QueueOption, error)

// field translates one value to one option.
func field[T any](option func(T) fila.QueueOption) translation {
	return func(raw json.RawMessage) ([]fila.QueueOption, error) {
		value, err := decode[T](raw)
		return []fila.QueueOption{option(value)}, err
	}
}

func word(options map[string]func() fila.QueueOption) translation {
	return func(raw json.RawMessage) ([]fila.QueueOption, error) {
		value, err := decode[string](raw)
		if err != nil || options[value] == nil {
			return nil, fmt.Errorf("%q: %w", value, errUnsupported)
		}
		return []fila.QueueOption{options[value]()}, nil
	}
}

func parts(translations map[string]translation) translation {
	return func(raw json.RawMessage) ([]fila.QueueOption, error) {
		given, err := decode[map[string]json.RawMessage](raw)
		var opts []fila.QueueOption
		for name, value := range given {
			if translations[name] == nil {
				return nil, fmt.Errorf("%s: %w", name, errUnsupported)
			}
			more, err := translations[name](value)
			if err != nil {
				return nil, err
			}
			opts = append(opts, more...)
		}
		return opts, err
	}
}

var queueOptionByField = map[string]translation{
	"on_enqueue_script":     field(fila.OnEnqueueScript),
	"on_failure_script":     field(fila.OnFailureScript),
	"visibility_timeout_ms": field(func(n int64) fila.QueueOption { return fila.VisibilityTimeout(ms(n)) }),
	"max_attempts":          field(fila.MaxAttempts),
	"durability":            word(map[string]func() fila.QueueOption{"fsync": fila.DurableFsync, "os": fila.DurableOS}),
	"max_depth":             field(fila.MaxDepth),
	"max_bytes":             field(fila.MaxBytes),
	"fairness_key_header":   field(fila.FairnessKeyHeader),
	"weight_header":         field(fila.WeightHeader),
	"weights":               field(fila.Weights),
	"cost_header":           field(fila.CostHeader),
	"priority_header":       field(fila.PriorityHeader),
	"throttle_key_headers":  field(func(names []string) fila.QueueOption { return fila.ThrottleKeyHeaders(names...) }),
	"retry": parts(map[string]translation{
		"kind": word(map[string]func() fila.QueueOption{
			"exponential": fila.RetryIsExponential, "fixed": fila.RetryIsFixed,
		}),
		"base_ms": field(func(n int64) fila.QueueOption { return fila.RetryBase(ms(n)) }),
		"cap_ms":  field(func(n int64) fila.QueueOption { return fila.RetryCap(ms(n)) }),
		"jitter":  field(fila.RetryJitter),
	}),
	"hook_fallback": word(map[string]func() fila.QueueOption{
		"hold":   func() fila.QueueOption { return fila.HoldOnHookFailure(true) },
		"policy": func() fila.QueueOption { return fila.HoldOnHookFailure(false) },
	}),
	"key_limit":              field(fila.KeyLimit),
	"allow_producer_routing": field(fila.AllowProducerRouting),
	"key_order": word(map[string]func() fila.QueueOption{
		"strict":  func() fila.QueueOption { return fila.StrictKeyOrder(true) },
		"relaxed": func() fila.QueueOption { return fila.StrictKeyOrder(false) },
	}),
	"retention": parts(map[string]translation{
		"soft_period_ms": field(func(n int64) fila.QueueOption { return fila.KeepFor(ms(n)) }),
		"soft_bytes":     field(fila.KeepBytes),
		"hard_period_ms": field(func(n int64) fila.QueueOption { return fila.DropAfter(ms(n)) }),
		"hard_bytes":     field(fila.DropBeyond),
	}),
	"intake": parts(map[string]translation{
		"headers":       field(func(names []string) fila.QueueOption { return fila.IntakeHeaders(names...) }),
		"dedup_headers": field(func(names []string) fila.QueueOption { return fila.IntakeDedupHeaders(names...) }),
	}),
	"key_defaults": parts(map[string]translation{
		"rate_per_second":      field(fila.KeyRateDefault),
		"burst":                field(fila.KeyBurstDefault),
		"max_in_flight":        field(fila.KeyCapDefault),
		"committed_per_second": field(fila.KeyCommittedDefault),
	}),
	"channels":              field(func(names []string) fila.QueueOption { return fila.Channels(names...) }),
	"dedup_window_ms":       field(func(n int64) fila.QueueOption { return fila.DedupWindow(ms(n)) }),
	"ttl_to_dlq":            field(fila.TTLToDLQ),
	"paused":                field(fila.Paused),
	"paused_channels":       field(func(names []string) fila.QueueOption { return fila.PausedChannels(names...) }),
	"disconnect_grace_ms":   field(func(n int64) fila.QueueOption { return fila.DisconnectGrace(ms(n)) }),
	"expires_after_idle_ms": field(func(n int64) fila.QueueOption { return fila.ExpiresAfterIdle(ms(n)) }),
}

type scheduleSettings struct {
	Cron     string            `json:"cron"`
	EveryMs  uint64            `json:"every_ms"`
	TimeZone string            `json:"time_zone"`
	Payload  []byte            `json:"payload"`
	Headers  map[string]string `json:"headers"`
	TTLMs    uint64            `json:"ttl_ms"`
	Missed   string            `json:"missed"`
	Paused   bool              `json:"paused"`
}

func (s *scheduleSettings) wire() *fila.ScheduleSettings {
	rules := map[string]filav1.MissedRule{"one": fila.MissedOne, "all": fila.MissedAll, "skip": fila.MissedSkip}
	return &fila.ScheduleSettings{
		Cron: s.Cron, EveryMs: s.EveryMs, TimeZone: s.TimeZone, Payload: s.Payload, Headers: s.Headers, TtlMs: s.TTLMs,
		Missed: rules[s.Missed], Paused: s.Paused,
	}
}

// limitPart is a rate, a budget or the bounds of one that learns.
type limitPart struct {
	PerSecond float64 `json:"per_second"`
	Burst     float64 `json:"burst"`
	Amount    float64 `json:"amount"`
	PeriodMs  uint64  `json:"period_ms"`
	AnchorMs  int64   `json:"anchor_ms"`
	Unit      string  `json:"unit"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
}

func (r *request) limit() *fila.LimitSettings {
	units := map[string]filav1.Limit_Unit{"messages": fila.UnitMessages, "cost": fila.UnitCost}
	limit := &fila.LimitSettings{Name: *r.Name, Shadow: r.Shadow}
	if r.MaxInFlight != nil {
		limit.MaxInFlight = *r.MaxInFlight
	}
	for _, rate := range r.Rates {
		given := &fila.LimitRate{PerSecond: rate.PerSecond, Burst: rate.Burst, Unit: units[rate.Unit]}
		limit.Rates = append(limit.Rates, given)
	}
	if given := r.Budget; given != nil {
		limit.Budget = &fila.LimitBudget{
			Amount: given.Amount, PeriodMs: given.PeriodMs, AnchorMs: given.AnchorMs, Unit: units[given.Unit],
		}
	}
	if r.Learn != nil {
		limit.Learn = &fila.LimitLearn{Min: r.Learn.Min, Max: r.Learn.Max}
	}
	return limit
}

func (r *request) keyPolicy() []fila.KeyPolicyOption {
	var opts []fila.KeyPolicyOption
	if r.Weight != nil {
		opts = append(opts, fila.KeyWeight(*r.Weight))
	}
	if r.Paused != nil {
		opts = append(opts, fila.KeyPaused(*r.Paused))
	}
	if r.MaxInFlight != nil {
		opts = append(opts, fila.KeyMaxInFlight(*r.MaxInFlight))
	}
	if r.RatePerSecond != nil {
		opts = append(opts, fila.KeyRate(*r.RatePerSecond))
	}
	if r.Burst != nil {
		opts = append(opts, fila.KeyBurst(*r.Burst))
	}
	if r.CapByDefault {
		opts = append(opts, fila.KeyCapByDefault())
	}
	if r.RateByDefault {
		opts = append(opts, fila.KeyRateByDefault())
	}
	if r.CommittedPerSecond != nil {
		opts = append(opts, fila.KeyCommitted(*r.CommittedPerSecond))
	}
	if r.CommittedByDefault {
		opts = append(opts, fila.KeyCommittedByDefault())
	}
	if r.Comment != "" {
		opts = append(opts, fila.KeyComment(r.Comment))
	}
	return opts
}
