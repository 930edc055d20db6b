package dev.fila.client.conformance;

import com.google.gson.JsonObject;
import dev.fila.client.FilaClient;
import dev.fila.client.Rights;
import dev.fila.v1.Quotas;
import java.time.Duration;

/** What admins do with keys and rights. */
final class KeyOperations {
    private KeyOperations() {}

    /** Null when this is none of them. */
    static JsonObject run(String op, FilaClient client, Request request) {
        return switch (op) {
            case "who_am_i" -> Answers.wire(client.whoAmI());
            case "create_key" ->
                    Answers.wire(
                            client.createKey(
                                    name(request),
                                    request.millis("expires_after_ms").orElse(null),
                                    request.text("as_tenant").orElse(null)));
            case "rotate_key" ->
                    Answers.wire(
                            client.rotateKey(
                                    request.needText("key_id"),
                                    request.millis("overlap_ms").orElse(Duration.ZERO),
                                    request.millis("expires_after_ms").orElse(null)));
            case "revoke_key" -> {
                client.revokeKey(request.needText("key_id"), request.flag("force").orElse(false));
                yield new JsonObject();
            }
            case "grant" -> Answers.wire(client.grant(name(request), rights(request)));
            case "revoke_grant" ->
                    Answers.wire(
                            client.revokeGrant(
                                    name(request),
                                    rights(request),
                                    request.flag("force").orElse(false)));
            case "forget_principal" ->
                    Answers.wire(
                            client.forgetPrincipal(
                                    name(request), request.flag("force").orElse(false)));
            case "get_principal" ->
                    Answers.wire(client.getPrincipal(request.text("name").orElse(null)));
            case "list_principals" ->
                    Answers.object(
                            "principals", client.listPrincipals(request.text("prefix").orElse("")));
            case "set_quotas" -> Answers.wire(client.setQuotas(name(request), quotas(request)));
            case "list_audit" ->
                    Answers.object(
                            "records",
                            client.listAudit(
                                    request.number("before").orElse(0L),
                                    request.integer("limit").orElse(0)));
            case "create_tenant_link" ->
                    Answers.wire(
                            request.text("right").orElse("view").equals("produce")
                                    ? client.createWebhookLink(
                                            request.needText("queue"),
                                            request.needText("fairness_key"),
                                            request.millis("ttl_ms").orElse(null))
                                    : client.createTenantLink(
                                            request.needText("queue"),
                                            request.needText("fairness_key"),
                                            request.millis("ttl_ms").orElse(null)));
            case "list_tenant_links" ->
                    Answers.object(
                            "links", client.listTenantLinks(request.text("queue").orElse(null)));
            case "revoke_tenant_link" -> {
                client.revokeTenantLink(request.needText("queue"), request.needText("link_id"));
                yield new JsonObject();
            }
            default -> null;
        };
    }

    private static String name(Request request) {
        return request.needText("name");
    }

    private static Rights rights(Request request) {
        Rights.Builder rights = Rights.builder();
        rights.produce(request.textList("produce").toArray(String[]::new));
        rights.consume(request.textList("consume").toArray(String[]::new));
        rights.manage(request.textList("manage").toArray(String[]::new));
        rights.view(request.textList("view").toArray(String[]::new));
        rights.cancel(request.textList("cancel").toArray(String[]::new));
        if (request.flag("admin").orElse(false)) {
            rights.admin();
        }
        return rights.build();
    }

    private static Quotas quotas(Request request) {
        return Quotas.newBuilder()
                .setMessagesPerSecond(request.real("messages_per_second").orElse(0.0))
                .setBytesPerSecond(request.real("bytes_per_second").orElse(0.0))
                .setConnections(request.integer("connections").orElse(0))
                .setStreams(request.integer("streams").orElse(0))
                .setInFlight(request.integer("in_flight").orElse(0))
                .setStoredBytes(request.number("stored_bytes").orElse(0L))
                .build();
    }
}
