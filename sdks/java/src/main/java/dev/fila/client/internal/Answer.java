package dev.fila.client.internal;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * What a call waits for. Either one of the program's threads waits for it, and may be woken from
 * any thread at once; or the program holds it as a future, whose dependents are the program's own
 * code and must not hold up the connection they were answered on.
 */
public final class Answer<T> extends CompletableFuture<T> {
    private final boolean awaited;

    private Answer(boolean awaited) {
        this.awaited = awaited;
    }

    /** An answer that a thread waits for, and that nobody else sees. */
    public static <T> Answer<T> awaited() {
        return new Answer<>(true);
    }

    /** An answer that is given to the program. */
    public static <T> Answer<T> given() {
        return new Answer<>(false);
    }

    /** Whether somebody waits for it, or has said what depends on it. */
    public boolean isWatched() {
        return awaited || getNumberOfDependents() > 0;
    }

    /**
     * Answers that came together. Those that the program holds are completed in one task of the
     * executor.
     */
    public static final class Batch {
        private final Executor executor;
        private @Nullable List<Runnable> given;

        /** An empty batch. */
        public Batch(Executor executor) {
            this.executor = executor;
        }

        /** The call went well. */
        public <T> void complete(Answer<T> answer, @Nullable T value) {
            if (answer.awaited) {
                answer.complete(value);
            } else {
                later(() -> answer.complete(value));
            }
        }

        /** The call failed. */
        public void fail(Answer<?> answer, Throwable error) {
            if (answer.awaited) {
                answer.completeExceptionally(error);
            } else {
                later(() -> answer.completeExceptionally(error));
            }
        }

        /** Lets the program's futures know. */
        public void deliver() {
            List<Runnable> all = given;
            if (all != null) {
                given = null;
                executor.execute(() -> all.forEach(Runnable::run));
            }
        }

        private void later(Runnable completion) {
            if (given == null) {
                given = new ArrayList<>();
            }
            given.add(completion);
        }
    }
}
