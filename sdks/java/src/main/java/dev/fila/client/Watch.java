package dev.fila.client;

import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Queue;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What a broker tells over a stream, one after the other, as fast as it is asked for. {@link
 * #hasNext()} waits for the next one, and is false at the end. A broken stream is opened again; it
 * throws {@link dev.fila.client.errors.UnavailableException} when the broker stays away for {@link
 * ClientOptions#retryFor()}. For one thread at a time; any thread may close it, which ends it.
 *
 * @param <T> what is told
 */
public final class Watch<T> implements Iterator<T>, AutoCloseable {
    private final Supplier<@Nullable Collection<T>> more;
    private final Runnable close;
    private final Queue<T> page = new ArrayDeque<>();

    <A> Watch(ResumedStream<?, A> stream, Function<A, Collection<T>> items) {
        more =
                () -> {
                    A answer = stream.next();
                    return answer == null ? null : items.apply(answer);
                };
        close = stream::close;
    }

    @Override
    public boolean hasNext() {
        while (page.isEmpty()) {
            Collection<T> next = more.get();
            if (next == null) {
                return false;
            }
            page.addAll(next);
        }
        return true;
    }

    @Override
    public T next() {
        if (!hasNext()) {
            throw new NoSuchElementException("there is no more: it was read to its end, or closed");
        }
        return page.remove();
    }

    /** Ends it; who waits in {@link #hasNext()} is told that there is no more. */
    @Override
    public void close() {
        close.run();
    }
}
