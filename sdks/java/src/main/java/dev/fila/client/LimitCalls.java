package dev.fila.client;

import dev.fila.v1.DeleteLimitRequest;
import dev.fila.v1.Limit;
import dev.fila.v1.LimitState;
import dev.fila.v1.ListLimitsRequest;
import dev.fila.v1.ListLimitsResponse;
import dev.fila.v1.ResetLimitRequest;
import dev.fila.v1.SetLimitRequest;
import java.util.Map;
import java.util.Optional;

/**
 * Limits: what the messages that name a throttle key may use of it, over all queues. All these
 * calls need the right {@code admin}.
 */
public abstract sealed class LimitCalls extends ScheduleCalls permits KeyCalls {
    LimitCalls(Connection connection) {
        super(connection);
    }

    /**
     * Sets the limit of a throttle key as a whole, or where its name ends in a {@code *} that of
     * each throttle key which begins so; returns it with all that was left out. Throws
     * InvalidException, LimitExceededException.
     */
    public Limit setLimit(Limit limit) {
        SetLimitRequest request = SetLimitRequest.newBuilder().setLimit(limit).build();
        return call(Rpc.SET_LIMIT, request, Map.of()).getLimit();
    }

    /**
     * The limit that messages with this throttle key meet, its own or that of a pattern, and what
     * of it is used; empty where nothing limits it.
     */
    public Optional<LimitState> getLimit(String throttleKey) {
        ListLimitsRequest request =
                ListLimitsRequest.newBuilder().setThrottleKey(throttleKey).build();
        return call(Rpc.LIST_LIMITS, request, Map.of()).getLimitsList().stream().findFirst();
    }

    /** The first 100 of the limits whose names begin with {@code prefix}. */
    public ListLimitsResponse listLimits(String prefix) {
        return listLimits(prefix, "", 0);
    }

    /**
     * The limits whose names begin with {@code prefix}, in the order of their names: {@code
     * maxLimits} of them (0 for 100, at most 1,000), behind the name {@code after} where that is
     * not empty.
     */
    public ListLimitsResponse listLimits(String prefix, String after, int maxLimits) {
        ListLimitsRequest request =
                ListLimitsRequest.newBuilder()
                        .setPrefix(prefix)
                        .setAfter(after)
                        .setMaxLimits(
                                Arguments.inRange("maxLimits", maxLimits, 0, Integer.MAX_VALUE))
                        .build();
        return call(Rpc.LIST_LIMITS, request, Map.of());
    }

    /**
     * Deletes a limit by the name it was set with; what waits for it goes. Throws
     * NotFoundException.
     */
    public void deleteLimit(String name) {
        DeleteLimitRequest request = DeleteLimitRequest.newBuilder().setLimitName(name).build();
        call(Rpc.DELETE_LIMIT, request, Map.of());
    }

    /**
     * Says how much of its budget a throttle key has spent in this period, and returns how its
     * limit is then. Throws NotFoundException, InvalidException.
     */
    public LimitState resetLimit(String throttleKey, double spent) {
        ResetLimitRequest request =
                ResetLimitRequest.newBuilder().setThrottleKey(throttleKey).setSpent(spent).build();
        return call(Rpc.RESET_LIMIT, request, Map.of()).getLimit();
    }
}
