package dev.fila.client.errors;

import java.io.Serializable;
import org.jspecify.annotations.Nullable;

/**
 * What became of one item of a batch.
 *
 * @param messageId the message's id; empty for an enqueue that failed
 * @param offset the message's offset in its queue's log; 0 where it is not known
 * @param error why the item failed; null when it went well
 */
public record ItemResult(String messageId, long offset, @Nullable FilaException error)
        implements Serializable {
    private static final long serialVersionUID = 1;

    /** Whether the item went well. */
    public boolean isOk() {
        return error == null;
    }
}
