package dev.fila.client;

import dev.fila.client.errors.CallInterruptedException;
import dev.fila.client.errors.ClientClosedException;
import dev.fila.client.errors.FilaException;
import dev.fila.client.internal.Blocking;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.stream.IntStream;

/**
 * A handler at work on a queue's messages, on so many threads at once as was asked for.
 *
 * <p>{@link #close()} takes nothing more, lets the handlers finish what they have in hand, and
 * returns when the broker has answered what they settled, or after five seconds without its answer.
 * When the queue does not exist or is deleted, or anything else ends the consumer, {@link #done()}
 * fails with it, and it is logged once.
 */
public final class Handling implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger("dev.fila.client");

    private final String queue;
    private final Consumer consumer;
    private final MessageHandler handler;
    private static final Duration ANSWERS_AWAITED = Duration.ofSeconds(5);

    private final AtomicBoolean isEndLogged = new AtomicBoolean();

    /** Of settlements that the broker has not answered yet. */
    private final Set<CompletableFuture<?>> answers = ConcurrentHashMap.newKeySet();

    private final CompletableFuture<Void> done;

    Handling(
            String queue,
            Consumer consumer,
            int concurrency,
            MessageHandler handler,
            Executor executor) {
        this.queue = queue;
        this.consumer = consumer;
        this.handler = handler;
        List<CompletableFuture<Void>> places =
                IntStream.range(0, concurrency)
                        .mapToObj(place -> CompletableFuture.runAsync(this::work, executor))
                        .toList();
        done =
                CompletableFuture.allOf(places.toArray(new CompletableFuture<?>[0]))
                        .handle((nothing, failure) -> answered().thenCompose(all -> of(failure)))
                        .thenCompose(Function.identity());
    }

    /** When the broker has answered all that was settled, whatever it said, or too long has not. */
    private CompletableFuture<Void> answered() {
        return CompletableFuture.allOf(answers.toArray(new CompletableFuture<?>[0]))
                .exceptionally(refused -> null)
                .completeOnTimeout(null, ANSWERS_AWAITED.toMillis(), TimeUnit.MILLISECONDS);
    }

    private static CompletableFuture<Void> of(Throwable failure) {
        return failure == null
                ? CompletableFuture.completedFuture(null)
                : CompletableFuture.failedFuture(failure);
    }

    private void settled(CompletableFuture<?> answer) {
        answers.add(answer);
        answer.whenComplete((said, refused) -> answers.remove(answer));
    }

    /**
     * Completes when every handler has finished: after close, or with the error that ended the
     * consumer.
     */
    public CompletableFuture<Void> done() {
        return done.copy()
                .exceptionallyCompose(
                        failure ->
                                CompletableFuture.failedFuture(
                                        failure instanceof CompletionException
                                                ? failure.getCause()
                                                : failure));
    }

    /** Takes nothing more, and waits for the handlers that run. */
    @Override
    public void close() {
        consumer.close();
        try {
            Blocking.await(done());
        } catch (CallInterruptedException interrupted) {
            throw interrupted;
        } catch (FilaException ended) {
            LOG.log(Level.DEBUG, "the handling had ended before it was closed", ended);
        }
    }

    /** As {@link #close()}, waiting at most so long; says whether all handlers have finished. */
    public boolean close(Duration patience) {
        consumer.close();
        try {
            done().get(patience.toNanos(), TimeUnit.NANOSECONDS);
            return true;
        } catch (TimeoutException late) {
            return false;
        } catch (InterruptedException interrupted) {
            throw Blocking.interrupted(interrupted);
        } catch (ExecutionException ended) {
            return true;
        }
    }

    private void work() {
        try (Messages messages = consumer.iterator()) {
            while (messages.hasNext()) {
                handle(messages.next());
            }
        } catch (ClientClosedException closed) {
            throw closed; // the closing thread knows
        } catch (RuntimeException | Error ended) {
            // The program may never ask done(). All threads end with the consumer: told once.
            if (isEndLogged.compareAndSet(false, true)) {
                String text = "handlers of " + queue + " have ended, and take nothing more";
                LOG.log(Level.WARNING, text, ended);
            }
            throw ended;
        }
    }

    private void handle(Message message) {
        Guard guard = new Guard(Thread.currentThread());
        CompletableFuture<String> lost = message.lost();
        lost.thenRun(guard::interrupt);
        try {
            handler.handle(message);
            guard.end();
            if (!message.isSettled() && !message.isLost()) {
                settled(message.ackAsync());
            }
        } catch (ClientClosedException closed) {
            throw closed;
        } catch (Exception failure) {
            guard.end();
            failed(message, failure);
        } catch (Error mistake) {
            guard.end();
            failed(message, mistake);
            throw mistake;
        }
    }

    private void failed(Message message, Throwable failure) {
        if (message.isSettled() || message.isLost()) {
            LOG.log(
                    Level.WARNING,
                    "the handler threw after message " + message.id() + " was settled or lost",
                    failure);
            return;
        }
        LOG.log(Level.DEBUG, "the handler threw; the message is nacked", failure);
        try {
            if (failure instanceof LimitedException refusal) {
                settled(message.limitedAsync(refusal));
            } else {
                settled(message.nackAsync(failure.toString()));
            }
        } catch (FilaException closed) {
            LOG.log(Level.DEBUG, "the client was closed meanwhile", closed);
        }
    }

    /** Interrupts a handler's thread while it handles, and never after. */
    private static final class Guard {
        private final Thread thread;
        private boolean ended;
        private boolean interrupted;

        Guard(Thread thread) {
            this.thread = thread;
        }

        synchronized void interrupt() {
            if (!ended) {
                interrupted = true;
                thread.interrupt();
            }
        }

        synchronized void end() {
            ended = true;
            if (interrupted) {
                Thread.interrupted(); // it was meant for this message's work
            }
        }
    }
}
