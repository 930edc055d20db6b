package dev.fila.client.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import dev.fila.client.ChannelSettings;
import dev.fila.client.FilaClient;
import dev.fila.client.KeyPolicy;
import dev.fila.client.LogRange;
import dev.fila.client.LogReader;
import dev.fila.client.PeekOptions;
import dev.fila.client.PurgeOptions;
import dev.fila.client.QueueSettings;
import dev.fila.client.RedriveOptions;
import dev.fila.client.RetentionSettings;
import dev.fila.client.RetrySettings;
import dev.fila.v1.Durability;
import dev.fila.v1.GetMessageResponse;
import dev.fila.v1.HookFallback;
import dev.fila.v1.KeyOrder;
import dev.fila.v1.RetryPolicy;
import java.util.HashMap;
import java.util.Map;

/** The operators' calls. */
final class AdminOperations {
    private AdminOperations() {}

    /** Null when this is none of them. */
    static JsonObject run(String op, FilaClient client, Request request) {
        return switch (op) {
            case "create_queue" -> {
                QueueSettings settings = settings(request);
                client.createQueue(queue(request), settings);
                yield new JsonObject();
            }
            case "get_queue" -> Answers.wire(client.getQueue(queue(request)));
            case "update_queue" -> Answers.object("config", updateQueue(client, request));
            case "delete_queue" -> {
                client.deleteQueue(queue(request), request.flag("force").orElse(false));
                yield new JsonObject();
            }
            case "list_queues" ->
                    Answers.object(
                            "queues",
                            client.listQueues(
                                    request.text("prefix").orElse(""),
                                    request.text("containing").orElse(""),
                                    request.integer("page_size").orElse(0),
                                    request.text("page_token").orElse("")));
            case "get_stats" ->
                    Answers.wire(
                            client.getStats(
                                    queue(request),
                                    request.channel(),
                                    request.integer("max_keys").orElse(0)));
            case "purge" -> Answers.object("purged", purge(client, request));
            case "peek" -> Answers.object("messages", peek(client, request));
            case "redrive" -> Answers.object("redriven", redrive(client, request));
            case "set_config" -> {
                client.setConfig(request.needText("key"), request.needText("value"));
                yield new JsonObject();
            }
            case "get_config" -> Answers.object("value", client.getConfig(request.needText("key")));
            case "list_config" ->
                    Answers.object("entries", client.listConfig(request.text("prefix").orElse("")));
            case "set_key_policy" ->
                    Answers.wire(
                            client.setKeyPolicy(
                                    queue(request),
                                    request.needText("fairness_key"),
                                    keyPolicy(request)));
            case "explain_key" ->
                    Answers.wire(
                            client.explainKey(
                                    queue(request),
                                    request.channel(),
                                    request.needText("fairness_key")));
            case "skip_message" ->
                    Answers.wire(
                            client.skipMessage(
                                    queue(request),
                                    request.channel(),
                                    request.needText("fairness_key"),
                                    request.text("message_id").orElse(null)));
            case "get_message" -> Answers.wire(getMessage(client, request));
            case "cancel_messages" ->
                    Answers.object(
                            "outcomes",
                            client
                                    .cancelMessages(
                                            queue(request),
                                            request.channel(),
                                            request.textList("message_ids"),
                                            request.textList("dedup_keys"))
                                    .stream()
                                    .map(outcome -> outcome.name().substring(8).toLowerCase())
                                    .toList());
            case "read_log" -> Answers.object("messages", readLog(client, request));
            case "list_consumers" ->
                    Answers.object(
                            "consumers", client.listConsumers(queue(request), request.channel()));
            default -> channels(op, client, request);
        };
    }

    private static GetMessageResponse getMessage(FilaClient client, Request request) {
        String dedupKey = request.text("dedup_key").orElse("");
        return dedupKey.isEmpty()
                ? client.getMessage(
                        queue(request), request.channel(), request.needText("message_id"))
                : client.getMessageByDedupKey(queue(request), request.channel(), dedupKey);
    }

    private static JsonObject channels(String op, FilaClient client, Request request) {
        return switch (op) {
            case "create_channel" -> Answers.object("start_offset", createChannel(client, request));
            case "delete_channel" -> {
                client.deleteChannel(queue(request), request.needText("channel"));
                yield new JsonObject();
            }
            case "list_channels" -> Answers.object("channels", client.listChannels(queue(request)));
            case "seek_channel" ->
                    request.flag("validate_only").orElse(false)
                            ? Answers.wire(previewSeek(client, request))
                            : Answers.object("offset", seek(client, request));
            case "purge_channel" ->
                    Answers.object(
                            "purged",
                            client.purgeChannel(
                                    queue(request),
                                    request.channel(),
                                    request.text("fairness_key").orElse(null)));
            default -> ObservingOperations.run(op, client, request);
        };
    }

    private static dev.fila.v1.QueueConfig updateQueue(FilaClient client, Request request) {
        QueueSettings settings = settings(request);
        if (!request.has("expected_version") && !request.has("comment")) {
            return client.updateQueue(queue(request), settings);
        }
        return client.updateQueue(
                queue(request),
                settings,
                request.number("expected_version").orElse(0L),
                request.text("comment").orElse(""));
    }

    private static dev.fila.v1.SeekChannelResponse previewSeek(FilaClient client, Request request) {
        return request.has("time_ms")
                ? client.previewSeek(
                        queue(request), request.channel(), request.moment("time_ms").orElseThrow())
                : client.previewSeek(
                        queue(request), request.channel(), request.needNumber("offset"));
    }

    private static String queue(Request request) {
        return request.needText("queue");
    }

    private static long purge(FilaClient client, Request request) {
        PurgeOptions.Builder options = PurgeOptions.builder();
        request.text("fairness_key").ifPresent(options::fairnessKey);
        request.text("channel").ifPresent(options::channel);
        return client.purge(queue(request), options.build());
    }

    static PeekOptions page(Request request) {
        PeekOptions.Builder options = PeekOptions.builder();
        request.text("channel").ifPresent(options::channel);
        request.integer("max_messages").ifPresent(options::maxMessages);
        request.number("after_offset").ifPresent(options::afterOffset);
        request.text("fairness_key").ifPresent(options::fairnessKey);
        return options.build();
    }

    private static JsonArray peek(FilaClient client, Request request) {
        JsonArray messages = new JsonArray();
        client.peek(queue(request), page(request))
                .forEach(message -> messages.add(Answers.message(message)));
        return messages;
    }

    private static long redrive(FilaClient client, Request request) {
        RedriveOptions.Builder options = RedriveOptions.builder();
        request.number("count").ifPresent(options::count);
        request.real("rate_per_second").ifPresent(options::ratePerSecond);
        options.offsets(request.numberList("offsets"));
        return client.redrive(queue(request), options.build());
    }

    static KeyPolicy keyPolicy(Request request) {
        KeyPolicy.Builder policy = KeyPolicy.builder();
        request.integer("weight").ifPresent(policy::weight);
        request.flag("paused").ifPresent(policy::paused);
        request.integer("max_in_flight").ifPresent(policy::maxInFlight);
        request.real("rate_per_second").ifPresent(policy::ratePerSecond);
        request.real("burst").ifPresent(policy::burst);
        request.flag("cap_by_default").ifPresent(policy::capByDefault);
        request.flag("rate_by_default").ifPresent(policy::rateByDefault);
        request.real("committed_per_second").ifPresent(policy::committedPerSecond);
        request.flag("committed_by_default").ifPresent(policy::committedByDefault);
        request.text("comment").ifPresent(policy::comment);
        return policy.build();
    }

    private static JsonArray readLog(FilaClient client, Request request) {
        LogRange.Builder range = LogRange.builder();
        request.number("from_offset").ifPresent(range::fromOffset);
        request.number("to_offset").ifPresent(range::toOffset);
        request.moment("from_time_ms").ifPresent(range::fromTime);
        request.moment("to_time_ms").ifPresent(range::toTime);
        request.text("fairness_key").ifPresent(range::fairnessKey);
        request.integer("max_batch").ifPresent(range::maxBatch);
        int most = request.integer("max_messages").orElse(1000);
        JsonArray messages = new JsonArray();
        try (LogReader log = client.readLog(queue(request), range.build())) {
            while (messages.size() < most && log.hasNext()) {
                messages.add(Answers.message(log.next()));
            }
        }
        return messages;
    }

    private static long createChannel(FilaClient client, Request request) {
        ChannelSettings.Builder settings = ChannelSettings.builder();
        request.any("start")
                .ifPresent(
                        start -> {
                            if (start.isJsonObject()) {
                                Request at = new Request(start.getAsJsonObject());
                                at.number("offset").ifPresent(settings::startAt);
                                at.moment("time_ms").ifPresent(settings::startAt);
                            } else if (start.getAsString().equals("oldest")) {
                                settings.startAtOldest();
                            } else {
                                settings.startAtHead();
                            }
                        });
        request.millis("expires_after_idle_ms").ifPresent(settings::expiresAfterIdle);
        return client.createChannel(queue(request), request.needText("channel"), settings.build());
    }

    private static long seek(FilaClient client, Request request) {
        return request.has("time_ms")
                ? client.seekChannel(
                        queue(request), request.channel(), request.moment("time_ms").orElseThrow())
                : client.seekChannel(
                        queue(request), request.channel(), request.needNumber("offset"));
    }

    static QueueSettings settings(Request request) {
        QueueSettings.Builder settings = QueueSettings.builder();
        Request config = request.object("config").orElse(new Request(new JsonObject()));
        config.text("on_enqueue_script").ifPresent(settings::onEnqueueScript);
        config.text("on_failure_script").ifPresent(settings::onFailureScript);
        config.millis("visibility_timeout_ms").ifPresent(settings::visibilityTimeout);
        config.integer("max_attempts").ifPresent(settings::maxAttempts);
        config.text("durability")
                .ifPresent(
                        word ->
                                settings.durability(
                                        Durability.valueOf("DURABILITY_" + upper(word))));
        config.number("max_depth").ifPresent(settings::maxDepth);
        config.number("max_bytes").ifPresent(settings::maxBytes);
        config.text("fairness_key_header").ifPresent(settings::fairnessKeyHeader);
        config.text("weight_header").ifPresent(settings::weightHeader);
        config.object("weights")
                .ifPresent(
                        weights -> {
                            Map<String, Integer> byKey = new HashMap<>();
                            weights.names()
                                    .forEach(
                                            key ->
                                                    byKey.put(
                                                            key,
                                                            weights.integer(key).orElseThrow()));
                            settings.weights(byKey);
                        });
        config.text("cost_header").ifPresent(settings::costHeader);
        config.text("priority_header").ifPresent(settings::priorityHeader);
        config.any("throttle_key_headers")
                .ifPresent(
                        any ->
                                settings.throttleKeyHeaders(
                                        config.textList("throttle_key_headers")));
        config.object("retry").ifPresent(retry -> settings.retry(retry(retry)));
        config.text("hook_fallback")
                .ifPresent(
                        word ->
                                settings.hookFallback(
                                        HookFallback.valueOf("HOOK_FALLBACK_" + upper(word))));
        config.text("key_order")
                .ifPresent(word -> settings.keyOrder(KeyOrder.valueOf("KEY_ORDER_" + upper(word))));
        config.object("retention").ifPresent(retention -> settings.retention(retention(retention)));
        config.any("channels").ifPresent(any -> settings.channels(config.textList("channels")));
        config.millis("dedup_window_ms").ifPresent(settings::dedupWindow);
        config.flag("ttl_to_dlq").ifPresent(settings::ttlToDlq);
        config.flag("paused").ifPresent(settings::paused);
        config.any("paused_channels")
                .ifPresent(any -> settings.pausedChannels(config.textList("paused_channels")));
        config.millis("disconnect_grace_ms").ifPresent(settings::disconnectGrace);
        config.millis("expires_after_idle_ms").ifPresent(settings::expiresAfterIdle);
        config.object("intake").ifPresent(intake -> takeIn(intake, settings));
        config.text("key_limit").ifPresent(settings::keyLimit);
        config.flag("allow_producer_routing").ifPresent(settings::allowProducerRouting);
        config.object("key_defaults").ifPresent(defaults -> keyDefaults(defaults, settings));
        config.checkAllSeen();
        return settings.build();
    }

    private static void keyDefaults(Request given, QueueSettings.Builder settings) {
        given.real("rate_per_second").ifPresent(settings::keyRateDefault);
        given.real("burst").ifPresent(settings::keyBurstDefault);
        given.number("max_in_flight").ifPresent(n -> settings.keyCapDefault((int) (long) n));
        given.real("committed_per_second").ifPresent(settings::keyCommittedDefault);
        given.checkAllSeen();
    }

    private static RetrySettings retry(Request given) {
        RetrySettings.Builder retry = RetrySettings.builder();
        given.text("kind")
                .ifPresent(word -> retry.kind(RetryPolicy.Kind.valueOf("KIND_" + upper(word))));
        given.millis("base_ms").ifPresent(retry::base);
        given.millis("cap_ms").ifPresent(retry::cap);
        given.real("jitter").ifPresent(retry::jitter);
        given.checkAllSeen();
        return retry.build();
    }

    private static void takeIn(Request given, QueueSettings.Builder settings) {
        given.any("headers").ifPresent(any -> settings.intakeHeaders(given.textList("headers")));
        given.any("dedup_headers")
                .ifPresent(any -> settings.intakeDedupHeaders(given.textList("dedup_headers")));
        given.checkAllSeen();
    }

    private static RetentionSettings retention(Request given) {
        RetentionSettings.Builder retention = RetentionSettings.builder();
        given.millis("soft_period_ms").ifPresent(retention::softPeriod);
        given.number("soft_bytes").ifPresent(retention::softBytes);
        given.millis("hard_period_ms").ifPresent(retention::hardPeriod);
        given.number("hard_bytes").ifPresent(retention::hardBytes);
        given.checkAllSeen();
        return retention.build();
    }

    private static String upper(String word) {
        return word.toUpperCase(java.util.Locale.ROOT);
    }
}
