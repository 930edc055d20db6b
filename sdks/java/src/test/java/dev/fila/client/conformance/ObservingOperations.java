package dev.fila.client.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.protobuf.ByteString;
import com.google.protobuf.MessageOrBuilder;
import dev.fila.client.EventFilter;
import dev.fila.client.FilaClient;
import dev.fila.client.OperationOptions;
import dev.fila.client.StatsWatch;
import dev.fila.client.Watch;
import dev.fila.v1.Budget;
import dev.fila.v1.Learn;
import dev.fila.v1.Limit;
import dev.fila.v1.MissedRule;
import dev.fila.v1.Operation;
import dev.fila.v1.Rate;
import dev.fila.v1.ScheduleSettings;
import dev.fila.v1.StartOperationRequest;
import dev.fila.v1.WatchStatsRequest;
import java.util.Base64;
import java.util.Locale;

/** What operators look at, and what they do with dead letters. */
final class ObservingOperations {
    private ObservingOperations() {}

    /** Null when this is none of them. */
    static JsonObject run(String op, FilaClient client, Request request) {
        return switch (op) {
            case "get_status" ->
                    Answers.wire(
                            client.getStatus(
                                    request.text("queue").orElse(null),
                                    request.text("fairness_key").orElse(null),
                                    request.integer("max_troubles").orElse(0)));
            case "list_late" ->
                    Answers.wire(
                            client.listLate(
                                    request.text("queue").orElse(null),
                                    request.integer("max_keys").orElse(0)));
            case "list_key_policies" ->
                    Answers.object(
                            "policies",
                            client.listKeyPolicies(
                                    queue(request), request.text("fairness_key").orElse(null)));
            case "preview_key_policy" ->
                    Answers.wire(
                            client.previewKeyPolicy(
                                    queue(request),
                                    request.channel(),
                                    request.needText("fairness_key"),
                                    AdminOperations.keyPolicy(request)));
            case "list_pending" ->
                    Answers.object(
                            "messages",
                            client.listPending(queue(request), AdminOperations.page(request)));
            case "find_keys" ->
                    Answers.wire(
                            client.findKeys(
                                    queue(request),
                                    request.channel(),
                                    request.text("prefix").orElse(""),
                                    request.integer("limit").orElse(0)));
            case "get_series" ->
                    Answers.wire(
                            client.getSeries(
                                    queue(request), request.channel(), request.textList("keys")));
            case "watch_stats" -> Answers.object("changes", watchStats(client, request));
            case "watch_events" -> Answers.object("events", watchEvents(client, request));
            case "list_queue_versions" ->
                    Answers.object(
                            "versions",
                            client.listQueueVersions(
                                    queue(request),
                                    request.number("before").orElse(0L),
                                    request.integer("limit").orElse(0)));
            case "get_queue_version" ->
                    Answers.wire(
                            client.getQueueVersion(
                                    queue(request), request.number("number").orElse(0L)));
            case "dry_run_policy" ->
                    Answers.wire(
                            client.dryRunPolicy(
                                    queue(request),
                                    AdminOperations.settings(request),
                                    request.integer("last").orElse(0)));
            default -> letters(op, client, request);
        };
    }

    private static JsonObject letters(String op, FilaClient client, Request request) {
        return switch (op) {
            case "drop_dead_letters" ->
                    Answers.object(
                            "dropped",
                            client.dropDeadLetters(queue(request), request.numberList("offsets")));
            case "edit_dead_letter" ->
                    Answers.object(
                            "message_id",
                            client.editDeadLetter(
                                    queue(request),
                                    request.needNumber("offset"),
                                    request.texts("headers"),
                                    Base64.getDecoder().decode(request.needText("payload"))));
            case "create_schedule" ->
                    Answers.wire(
                            client.createSchedule(
                                    queue(request),
                                    request.needText("schedule"),
                                    schedule(request.object("settings").orElseThrow())));
            case "update_schedule" ->
                    Answers.wire(
                            client.updateSchedule(
                                    queue(request),
                                    request.needText("schedule"),
                                    schedule(request.object("settings").orElseThrow())));
            case "pause_schedule" ->
                    Answers.wire(
                            client.pauseSchedule(
                                    queue(request),
                                    request.needText("schedule"),
                                    request.flag("paused").orElse(true),
                                    request.text("comment").orElse("")));
            case "delete_schedule" -> {
                client.deleteSchedule(queue(request), request.needText("schedule"));
                yield new JsonObject();
            }
            case "get_schedule" ->
                    Answers.wire(client.getSchedule(queue(request), request.needText("schedule")));
            case "list_schedules" ->
                    Answers.wire(
                            client.listSchedules(
                                    request.text("queue").orElse(null),
                                    request.integer("page_size").orElse(0),
                                    request.text("page_token").orElse("")));
            case "set_limit" -> Answers.wire(client.setLimit(limit(request)));
            case "get_limit" ->
                    Answers.object(
                            "limit",
                            client.getLimit(request.needText("throttle_key")).orElse(null));
            case "list_limits" ->
                    Answers.wire(
                            client.listLimits(
                                    request.text("prefix").orElse(""),
                                    request.text("after").orElse(""),
                                    request.integer("max_limits").orElse(0)));
            case "delete_limit" -> {
                client.deleteLimit(request.needText("name"));
                yield new JsonObject();
            }
            case "reset_limit" ->
                    Answers.wire(
                            client.resetLimit(
                                    request.needText("throttle_key"),
                                    request.real("spent").orElse(0.0)));
            case "start_operation" -> Answers.wire(startOperation(client, request));
            case "watch_operation" ->
                    Answers.object(
                            "operations",
                            taken(
                                    client.watchOperation(queue(request), operation(request)),
                                    Integer.MAX_VALUE));
            case "list_operations" ->
                    Answers.object(
                            "operations",
                            client.listOperations(request.text("queue").orElse(null)));
            case "cancel_operation" ->
                    Answers.wire(client.cancelOperation(queue(request), operation(request)));
            default -> KeyOperations.run(op, client, request);
        };
    }

    private static String queue(Request request) {
        return request.needText("queue");
    }

    private static String operation(Request request) {
        return request.needText("operation_id");
    }

    /** What a watch tells, at most so many. */
    private static JsonArray taken(Watch<? extends MessageOrBuilder> watch, int most) {
        JsonArray items = new JsonArray();
        try (watch) {
            while (items.size() < most && watch.hasNext()) {
                items.add(Answers.wire(watch.next()));
            }
        }
        return items;
    }

    private static JsonArray watchStats(FilaClient client, Request request) {
        StatsWatch.Builder what = StatsWatch.builder();
        what.queues(request.textList("queues"));
        request.text("channel").ifPresent(what::channel);
        request.text("order")
                .map(word -> WatchStatsRequest.Order.valueOf("ORDER_" + upper(word)))
                .ifPresent(what::order);
        request.integer("top").ifPresent(what::top);
        what.keys(request.textList("keys"));
        int most = request.integer("max_changes").orElse(Integer.MAX_VALUE);
        return taken(client.watchStats(what.build()), most);
    }

    private static JsonArray watchEvents(FilaClient client, Request request) {
        EventFilter.Builder filter = EventFilter.builder();
        request.text("queue").ifPresent(filter::queue);
        filter.kinds(request.textList("kinds"));
        request.text("fairness_key").ifPresent(filter::fairnessKey);
        request.number("after_position").ifPresent(filter::afterPosition);
        if (request.flag("follow").orElse(false)) {
            filter.follow();
        }
        int most = request.integer("max_events").orElse(Integer.MAX_VALUE);
        return taken(client.watchEvents(filter.build()), most);
    }

    private static Operation startOperation(FilaClient client, Request request) {
        var kind = StartOperationRequest.Kind.valueOf("KIND_" + upper(request.needText("kind")));
        OperationOptions.Builder options = OperationOptions.builder();
        request.real("rate_per_second").ifPresent(options::ratePerSecond);
        request.object("filter")
                .ifPresent(
                        filter -> {
                            filter.text("fairness_key").ifPresent(options::fairnessKey);
                            filter.text("reason").ifPresent(options::reason);
                            filter.text("error").ifPresent(options::error);
                            filter.moment("died_from_ms").ifPresent(options::diedFrom);
                            filter.moment("died_before_ms").ifPresent(options::diedBefore);
                            filter.text("source_channel").ifPresent(options::sourceChannel);
                            filter.checkAllSeen();
                        });
        return client.startOperation(queue(request), kind, options.build());
    }

    private static ScheduleSettings schedule(Request asked) {
        ScheduleSettings.Builder settings = ScheduleSettings.newBuilder();
        asked.text("cron").ifPresent(settings::setCron);
        asked.number("every_ms").ifPresent(settings::setEveryMs);
        asked.text("time_zone").ifPresent(settings::setTimeZone);
        asked.text("payload")
                .map(payload -> ByteString.copyFrom(Base64.getDecoder().decode(payload)))
                .ifPresent(settings::setPayload);
        settings.putAllHeaders(asked.texts("headers"));
        asked.number("ttl_ms").ifPresent(settings::setTtlMs);
        asked.text("missed")
                .map(word -> MissedRule.valueOf("MISSED_RULE_" + upper(word)))
                .ifPresent(settings::setMissed);
        asked.flag("paused").ifPresent(settings::setPaused);
        asked.checkAllSeen();
        return settings.build();
    }

    private static Limit limit(Request asked) {
        Limit.Builder limit = Limit.newBuilder().setName(asked.needText("name"));
        for (Request rate : asked.objects("rates")) {
            Rate.Builder given = limit.addRatesBuilder();
            rate.real("per_second").ifPresent(given::setPerSecond);
            rate.real("burst").ifPresent(given::setBurst);
            rate.text("unit").map(ObservingOperations::unit).ifPresent(given::setUnit);
            rate.checkAllSeen();
        }
        asked.integer("max_in_flight").ifPresent(limit::setMaxInFlight);
        asked.object("budget")
                .ifPresent(
                        budget -> {
                            Budget.Builder given = limit.getBudgetBuilder();
                            budget.real("amount").ifPresent(given::setAmount);
                            budget.number("period_ms").ifPresent(given::setPeriodMs);
                            budget.number("anchor_ms").ifPresent(given::setAnchorMs);
                            budget.text("unit")
                                    .map(ObservingOperations::unit)
                                    .ifPresent(given::setUnit);
                            budget.checkAllSeen();
                        });
        asked.object("learn")
                .ifPresent(
                        learn -> {
                            Learn.Builder given = limit.getLearnBuilder();
                            learn.real("min").ifPresent(given::setMin);
                            learn.real("max").ifPresent(given::setMax);
                            learn.checkAllSeen();
                        });
        asked.flag("shadow").ifPresent(limit::setShadow);
        return limit.build();
    }

    private static Limit.Unit unit(String word) {
        return Limit.Unit.valueOf("UNIT_" + upper(word));
    }

    private static String upper(String word) {
        return word.toUpperCase(Locale.ROOT);
    }
}
