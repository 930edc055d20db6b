package dev.fila.client.internal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.fila.client.errors.FilaException;
import dev.fila.v1.ItemStatus;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SmallPartsTest {
    private static final long SECOND = Duration.ofSeconds(1).toNanos();

    @ParameterizedTest
    @CsvSource({
        "NOT_FOUND,QUEUE_NOT_FOUND,QueueNotFoundException",
        "NOT_FOUND,CHANNEL_NOT_FOUND,ChannelNotFoundException",
        "NOT_FOUND,MESSAGE_NOT_FOUND,MessageNotFoundException",
        "NOT_FOUND,CONFIG_KEY_NOT_FOUND,ConfigKeyNotFoundException",
        "NOT_FOUND,OF_TOMORROW,NotFoundException",
        "ALREADY_EXISTS,QUEUE_EXISTS,QueueExistsException",
        "ALREADY_EXISTS,CHANNEL_EXISTS,ChannelExistsException",
        "INVALID_ARGUMENT,INVALID_FIELD,InvalidException",
        "INVALID_ARGUMENT,LIMIT_EXCEEDED,LimitExceededException",
        "FAILED_PRECONDITION,LEASE_LOST,LeaseLostException",
        "FAILED_PRECONDITION,SOURCE_QUEUE_GONE,SourceQueueGoneException",
        "RESOURCE_EXHAUSTED,QUEUE_FULL,QueueFullException",
        "RESOURCE_EXHAUSTED,HOOKS_FULL,HooksFullException",
        "RESOURCE_EXHAUSTED,DISK_FLOOR,DiskFloorException",
        "RESOURCE_EXHAUSTED,OVERLOADED,OverloadedException",
        "UNAVAILABLE,SHUTTING_DOWN,UnavailableException",
        "UNIMPLEMENTED,UNIMPLEMENTED,NotSupportedException",
        "PERMISSION_DENIED,'',NotAllowedException",
        "INTERNAL,INTERNAL,InternalException",
        "INTERNAL,QUEUE_NOT_FOUND,InternalException",
    })
    void aStatusAndItsReasonMeanOneError(Code code, String reason, String expected) {
        ItemStatus status =
                ItemStatus.newBuilder()
                        .setCode(code.value())
                        .setReason(reason)
                        .setMessage("why")
                        .build();
        FilaException error = ErrorMapping.ofItem(status, Map.of("queue", "orders"));
        assertEquals(expected, error.getClass().getSimpleName());
        assertEquals(code, error.code());
        assertEquals(error.getClass(), ErrorMapping.again(error).getClass());
        assertEquals(error, ErrorMapping.again(error).getCause());
    }

    @Test
    void aLeaseIsRememberedUntilAFurtherGenerationWasDelivered() {
        LeaseMemory memory = new LeaseMemory(2);
        memory.remember("a", 1);
        memory.remember("b", 2);
        memory.remember("c", 3);
        assertEquals(1, memory.get("a"));
        memory.remember("d", 4);
        memory.remember("e", 5);
        assertEquals(0, memory.get("a"));
        assertEquals(3, memory.get("c"));
    }

    @Test
    void aNewerDeliveryOfAMessageOutlivesTheSettlingOfTheFormer() {
        LeaseMemory memory = new LeaseMemory();
        memory.remember("a", 1);
        memory.remember("a", 2);
        memory.forget("a", 1);
        assertEquals(2, memory.get("a"));
        memory.forget("a", 2);
        assertEquals(0, memory.size());
    }

    @Test
    void messagesMayBeHandedOutForAVisibilityTimeoutFromTheLastFrameThatWasHeard() {
        Liveness liveness = new Liveness();
        assertFalse(liveness.mayHandOut(0));
        liveness.opened(0, Duration.ofSeconds(4));
        assertEquals(Duration.ofSeconds(1), liveness.interval());
        assertTrue(liveness.mayHandOut(4 * SECOND - 1));
        assertFalse(liveness.mayHandOut(4 * SECOND));
        long first = liveness.sayAlive(SECOND);
        liveness.sayAlive(2 * SECOND);
        liveness.answered(first);
        assertTrue(liveness.mayHandOut(5 * SECOND - 1));
        assertFalse(liveness.mayHandOut(5 * SECOND));
    }

    @Test
    void aSilentBrokerIsNotAskedWithoutEnd() {
        Liveness liveness = new Liveness();
        liveness.opened(0, Duration.ofSeconds(4));
        int said = 0;
        for (int second = 1; second < 100; second++) {
            said += liveness.sayAlive(second * SECOND) > 0 ? 1 : 0;
        }
        assertEquals(8, said);
    }
}
