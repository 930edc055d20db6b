package dev.fila.client;

import dev.fila.v1.AuditRecord;
import dev.fila.v1.CreateKeyRequest;
import dev.fila.v1.CreateKeyResponse;
import dev.fila.v1.CreateTenantLinkRequest;
import dev.fila.v1.CreateTenantLinkResponse;
import dev.fila.v1.ForgetPrincipalRequest;
import dev.fila.v1.GetPrincipalRequest;
import dev.fila.v1.GrantRequest;
import dev.fila.v1.ListAuditRequest;
import dev.fila.v1.ListPrincipalsRequest;
import dev.fila.v1.ListTenantLinksRequest;
import dev.fila.v1.Principal;
import dev.fila.v1.Quotas;
import dev.fila.v1.RevokeGrantRequest;
import dev.fila.v1.RevokeKeyRequest;
import dev.fila.v1.RevokeTenantLinkRequest;
import dev.fila.v1.Right;
import dev.fila.v1.RotateKeyRequest;
import dev.fila.v1.RotateKeyResponse;
import dev.fila.v1.SetQuotasRequest;
import dev.fila.v1.TenantLink;
import dev.fila.v1.WhoAmIRequest;
import dev.fila.v1.WhoAmIResponse;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Keys and rights: what admins do, and what everybody may ask about themselves. All but {@link
 * #whoAmI()}, the look at one's own principal and tenants' links need the right {@code admin}.
 */
public abstract sealed class KeyCalls extends LimitCalls permits FilaClient {
    KeyCalls(Connection connection) {
        super(connection);
    }

    /**
     * Says who the broker takes this client for, and what it may do; also while it asks for no
     * keys.
     */
    public WhoAmIResponse whoAmI() {
        return call(Rpc.WHO_AM_I, WhoAmIRequest.getDefaultInstance(), Map.of());
    }

    /** Makes a key for a name, which is new or not, for ever. */
    public CreateKeyResponse createKey(String name) {
        return createKey(name, null, null);
    }

    /**
     * Makes a key for a name, which is new or not; for ever when {@code expiresAfter} is null. The
     * answer is the only place where the key is ever told. With {@code asTenant} the messages of
     * its holder are bound to that fairness key; only for a name that is new, and with no right but
     * produce and view. Throws InvalidException, NotAllowedException.
     */
    public CreateKeyResponse createKey(
            String name, @Nullable Duration expiresAfter, @Nullable String asTenant) {
        CreateKeyRequest request =
                CreateKeyRequest.newBuilder()
                        .setName(name)
                        .setExpiresAfterMs(millisOrNone("expiresAfter", expiresAfter))
                        .setAsTenant(orEmpty(asTenant))
                        .build();
        return call(Rpc.CREATE_KEY, request, Map.of());
    }

    /**
     * Makes another key for the same name, for ever when {@code expiresAfter} is null; the old one
     * ends after {@code overlap}. Throws NotFoundException.
     */
    public RotateKeyResponse rotateKey(
            String keyId, Duration overlap, @Nullable Duration expiresAfter) {
        RotateKeyRequest request =
                RotateKeyRequest.newBuilder()
                        .setKeyId(keyId)
                        .setOverlapMs(Arguments.millis("overlap", overlap))
                        .setExpiresAfterMs(millisOrNone("expiresAfter", expiresAfter))
                        .build();
        return call(Rpc.ROTATE_KEY, request, Map.of());
    }

    /** Takes a key away, unless it is the last admin's. */
    public void revokeKey(String keyId) {
        revokeKey(keyId, false);
    }

    /**
     * Takes a key away: what it holds open ends within a second. The last admin's only with {@code
     * force}; then only {@code fila-server auth recover} makes another. Throws NotFoundException,
     * ConflictException.
     */
    public void revokeKey(String keyId, boolean force) {
        RevokeKeyRequest request =
                RevokeKeyRequest.newBuilder().setKeyId(keyId).setForce(force).build();
        call(Rpc.REVOKE_KEY, request, Map.of());
    }

    /**
     * Gives a name rights beside those it has; a name that is new is made, as for a certificate's.
     * Returns all it has then. Throws InvalidException.
     */
    public Principal grant(String name, Rights rights) {
        GrantRequest request =
                GrantRequest.newBuilder()
                        .setName(name)
                        .addAllPermissions(rights.permissions())
                        .build();
        return call(Rpc.GRANT, request, Map.of()).getPrincipal();
    }

    /** Takes rights back, unless nobody is an admin then. */
    public Principal revokeGrant(String name, Rights rights) {
        return revokeGrant(name, rights, false);
    }

    /**
     * Takes rights back, named as they were given; none named are all. Where nobody is an admin
     * then, only with {@code force}. Returns what is left. Throws NotFoundException,
     * ConflictException.
     */
    public Principal revokeGrant(String name, Rights rights, boolean force) {
        RevokeGrantRequest request =
                RevokeGrantRequest.newBuilder()
                        .setName(name)
                        .addAllPermissions(rights.permissions())
                        .setForce(force)
                        .build();
        return call(Rpc.REVOKE_GRANT, request, Map.of()).getPrincipal();
    }

    /** Forgets a name, unless nobody is an admin then. */
    public Principal forgetPrincipal(String name) {
        return forgetPrincipal(name, false);
    }

    /**
     * Forgets a name with its keys, rights, quotas and tenant. Where nobody is an admin then, only
     * with {@code force}. A name with nothing left goes by itself after a day. Returns what it had.
     * Throws NotFoundException, ConflictException.
     */
    public Principal forgetPrincipal(String name, boolean force) {
        ForgetPrincipalRequest request =
                ForgetPrincipalRequest.newBuilder().setName(name).setForce(force).build();
        return call(Rpc.FORGET_PRINCIPAL, request, Map.of()).getPrincipal();
    }

    /**
     * What is known of a name, or of this client's own when it is null: rights, keys, quotas.
     * Throws NotFoundException.
     */
    public Principal getPrincipal(@Nullable String name) {
        GetPrincipalRequest request =
                GetPrincipalRequest.newBuilder().setName(orEmpty(name)).build();
        return call(Rpc.GET_PRINCIPAL, request, Map.of()).getPrincipal();
    }

    /** The names that begin so with their rights and keys, sorted by name; at most 10,000. */
    public List<Principal> listPrincipals(String prefix) {
        ListPrincipalsRequest request =
                ListPrincipalsRequest.newBuilder().setPrefix(prefix).build();
        return call(Rpc.LIST_PRINCIPALS, request, Map.of()).getPrincipalsList();
    }

    /**
     * Bounds what a name may use, all its keys together; all bounds anew, 0 for none. Throws
     * NotFoundException, InvalidException.
     */
    public Principal setQuotas(String name, Quotas quotas) {
        SetQuotasRequest request =
                SetQuotasRequest.newBuilder().setName(name).setQuotas(quotas).build();
        return call(Rpc.SET_QUOTAS, request, Map.of()).getPrincipal();
    }

    /**
     * What admins did, newest first: only records below {@code before}, 0 for the newest; at most
     * {@code limit}, up to 1,000, 0 for 100. The newest 10,000 are kept.
     */
    public List<AuditRecord> listAudit(long before, int limit) {
        ListAuditRequest request =
                ListAuditRequest.newBuilder()
                        .setBefore(Arguments.inRange("before", before, 0, Long.MAX_VALUE))
                        .setLimit(Arguments.inRange("limit", limit, 0, Integer.MAX_VALUE))
                        .build();
        return call(Rpc.LIST_AUDIT, request, Map.of()).getRecordsList();
    }

    /** Makes a tenant's link that is valid for 7 days. */
    public CreateTenantLinkResponse createTenantLink(String queue, String fairnessKey) {
        return createTenantLink(queue, fairnessKey, null);
    }

    /**
     * Makes a key that shows one fairness key's numbers in one queue and may do nothing else, for
     * {@code ttl}: 7 days when it is null, 90 at most. The answer is the only place where the key
     * is ever told. It needs the right to manage the queue. Throws QueueNotFoundException,
     * ConflictException (the broker asks for no keys), NotAllowedException.
     */
    public CreateTenantLinkResponse createTenantLink(
            String queue, String fairnessKey, @Nullable Duration ttl) {
        return createLink(queue, fairnessKey, ttl, Right.RIGHT_VIEW);
    }

    /**
     * Makes the key at the end of a webhook's address: it only sends to one queue, for {@code ttl},
     * for ever when it is null, 10 years at most. What it sends has the fairness key, or the
     * queue's if that is empty. The rest is as {@link #createTenantLink(String, String, Duration)}
     * has it.
     */
    public CreateTenantLinkResponse createWebhookLink(
            String queue, String fairnessKey, @Nullable Duration ttl) {
        return createLink(queue, fairnessKey, ttl, Right.RIGHT_PRODUCE);
    }

    private CreateTenantLinkResponse createLink(
            String queue, String fairnessKey, @Nullable Duration ttl, Right right) {
        CreateTenantLinkRequest request =
                CreateTenantLinkRequest.newBuilder()
                        .setQueue(queue)
                        .setFairnessKey(fairnessKey)
                        .setTtlMs(millisOrNone("ttl", ttl))
                        .setRight(right)
                        .build();
        return call(Rpc.CREATE_TENANT_LINK, request, Map.of());
    }

    /**
     * The links of a queue, or of all that this client may manage when it is null; those that end
     * soonest first.
     */
    public List<TenantLink> listTenantLinks(@Nullable String queue) {
        ListTenantLinksRequest request =
                ListTenantLinksRequest.newBuilder().setQueue(orEmpty(queue)).build();
        return call(Rpc.LIST_TENANT_LINKS, request, Map.of()).getLinksList();
    }

    /** Takes a link away: what it holds open ends within a second. Throws NotFoundException. */
    public void revokeTenantLink(String queue, String linkId) {
        RevokeTenantLinkRequest request =
                RevokeTenantLinkRequest.newBuilder().setQueue(queue).setLinkId(linkId).build();
        call(Rpc.REVOKE_TENANT_LINK, request, Map.of());
    }

    private static long millisOrNone(String name, @Nullable Duration duration) {
        return duration == null ? 0 : Arguments.millis(name, duration);
    }
}
