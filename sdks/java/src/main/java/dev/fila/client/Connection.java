package dev.fila.client;

import dev.fila.client.errors.ClientClosedException;
import dev.fila.client.errors.ErrorDetails;
import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.NotOwnerException;
import dev.fila.client.internal.Addresses;
import dev.fila.client.internal.Route;
import dev.fila.client.internal.Timers;
import io.grpc.CallOptions;
import io.grpc.ChannelCredentials;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ConnectivityState;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status.Code;
import io.grpc.stub.MetadataUtils;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * One gRPC channel to one broker, or to the node of a group that serves, and the rules by which a
 * call is tried again.
 *
 * <pre>
 * what went wrong                              tried again
 * the broker could not be reached              yes, for retryFor: nothing was sent
 * the broker said UNAVAILABLE (it is stopping) yes, for retryFor: it did nothing
 * a node of a group said that another serves   yes, for retryFor, there
 * the connection broke, the answer is missing  only what {@link Rpc} calls repeatable
 * the broker said it is overloaded             for waitWhenOverloaded, at the pace it suggests
 * anything else                                no
 * </pre>
 *
 * <p>To know that nothing was sent, a call starts only on a connection that stands.
 */
final class Connection {
    /**
     * Above the broker's largest payload (64 MiB) with its headers, so that no delivery is
     * unreadable.
     */
    private static final int MESSAGE_BYTES_MAX = 80 << 20;

    private static final Metadata.Key<String> AUTHORIZATION =
            Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

    private static final long CLOSE_TIMEOUT_S = 5;

    /**
     * A node of a group that hangs is left for another; a broker allows no more pings than this.
     */
    private static final Duration GROUP_KEEPALIVE_TIME = Duration.ofSeconds(10);

    private static final Duration GROUP_KEEPALIVE_TIMEOUT = Duration.ofSeconds(3);

    /** The port is asked for the reason this often: what listens there may change. */
    private static final long DIAGNOSE_EVERY_NS = 1_000_000_000;

    private static final System.Logger LOG = System.getLogger("dev.fila.client");

    final ClientOptions options;
    final Timers timers;
    final ClientThreads threads;
    final ConnectionEvents events;

    private final Addresses addresses;
    private final Route route;
    private final @Nullable TlsOptions tls;
    private final Diagnosis diagnosis;
    private final ManagedChannel channel;
    private final AtomicLong nextDiagnosis = new AtomicLong(Long.MIN_VALUE);
    private volatile boolean hasStood;
    private volatile boolean closed;

    Connection(List<String> targets, ClientOptions options) {
        this.options = options;
        addresses = Addresses.parse(targets);
        route = new Route(addresses);
        timers = options.timers().get();
        threads = new ClientThreads(options.executor());
        TlsOptions wanted = options.tls();
        if (wanted == null && addresses.isSecure()) {
            wanted = TlsOptions.defaults();
        }
        tls = wanted == null ? null : wanted.withEnvironment(System.getenv());
        diagnosis = new Diagnosis(addresses.hostPorts(), tls);
        channel = newChannel();
        events = new ConnectionEvents(options.connectionListener(), threads.executor());
    }

    private ManagedChannel newChannel() {
        ChannelCredentials credentials =
                tls == null ? InsecureChannelCredentials.create() : tls.credentials();
        boolean isGroup = addresses.hostPorts().size() > 1 && options.hasUsualKeepAlive();
        Duration keepAliveTime = isGroup ? GROUP_KEEPALIVE_TIME : options.keepAliveTime();
        Duration keepAliveTimeout = isGroup ? GROUP_KEEPALIVE_TIMEOUT : options.keepAliveTimeout();
        ManagedChannelBuilder<?> builder =
                Grpc.newChannelBuilder(route.channelTarget(), credentials, route.registry())
                        .executor(threads.own())
                        .maxInboundMessageSize(MESSAGE_BYTES_MAX)
                        // Our own rules decide what is tried again.
                        .disableRetry()
                        .idleTimeout(Integer.MAX_VALUE, TimeUnit.DAYS)
                        // A broker that vanished without a word (power, network) is noticed by an
                        // unanswered ping.
                        .keepAliveTime(keepAliveTime.toNanos(), TimeUnit.NANOSECONDS)
                        .keepAliveTimeout(keepAliveTimeout.toNanos(), TimeUnit.NANOSECONDS)
                        .userAgent("fila-java/" + FilaClient.VERSION);
        if (tls != null) {
            tls.serverName().ifPresent(builder::overrideAuthority);
        }
        String apiKey = options.apiKey() == null ? System.getenv("FILA_API_KEY") : options.apiKey();
        if (apiKey != null && !apiKey.isEmpty()) {
            builder.intercept(bearing(apiKey));
        }
        return builder.build();
    }

    private static ClientInterceptor bearing(String apiKey) {
        Metadata headers = new Metadata();
        headers.put(AUTHORIZATION, "Bearer " + apiKey);
        return MetadataUtils.newAttachHeadersInterceptor(headers);
    }

    /** Where the program's own code runs. */
    Executor executor() {
        return threads.executor();
    }

    // Calls.

    /**
     * Runs a unary call under the rules above; {@code known} is what it is about, for the error it
     * may end in.
     */
    <Q, A> CompletableFuture<A> call(Rpc<Q, A> rpc, Q request, Map<String, String> known) {
        return call(rpc, request, known, options.callTimeout());
    }

    /** The same for a call that is meant to take long: the timeout is that of each attempt. */
    <Q, A> CompletableFuture<A> call(
            Rpc<Q, A> rpc, Q request, Map<String, String> known, Duration timeout) {
        RetriedCall<Q, A> call = new RetriedCall<>(this, rpc, request, known, timeout);
        call.attempt();
        return call.answer();
    }

    /**
     * Begins a call of gRPC's; its callbacks come on the connection's own thread and must be quick.
     */
    <Q, A> ClientCall<Q, A> newCall(MethodDescriptor<Q, A> method, CallOptions callOptions) {
        checkOpen();
        return channel.newCall(method, callOptions.withExecutor(Runnable::run));
    }

    // The connection itself.

    /**
     * Completes when the connection stands; fails with UnavailableException at {@code giveUpAt}, by
     * the timers.
     */
    CompletableFuture<Void> ready(long giveUpAt) {
        return ready(giveUpAt, options.backoff()::waitBefore);
    }

    /**
     * The same, asking for the connection at a pace of the caller's: the wait before each attempt.
     */
    CompletableFuture<Void> ready(long giveUpAt, IntFunction<Duration> pace) {
        if (!closed && channel.getState(true) == ConnectivityState.READY) {
            hasStood = true;
            return CompletableFuture.completedFuture(null);
        }
        return new ReadyWait(this, addresses, giveUpAt, pace).begin();
    }

    long deadlineAfter(Duration patience) {
        return timers.now() + patience.toNanos();
    }

    ConnectivityState state() {
        return closed ? ConnectivityState.SHUTDOWN : channel.getState(true);
    }

    void onceStateIsNot(ConnectivityState state, Runnable callback) {
        channel.notifyWhenStateChanged(state, callback);
    }

    /** The connection stands: its settings are right. */
    void stands() {
        hasStood = true;
    }

    /**
     * Looks why attempts to connect fail. Where the settings are wrong and never were right, {@code
     * tell} gets the sentence that names it; where they have been, it is logged.
     */
    void findOutWhy(Consumer<String> tell) {
        long now = System.nanoTime();
        long next = nextDiagnosis.get();
        boolean isDue = next == Long.MIN_VALUE || now - next >= 0;
        if (!isDue || !nextDiagnosis.compareAndSet(next, now + DIAGNOSE_EVERY_NS)) {
            return;
        }
        Thread asking =
                new Thread(
                        () -> {
                            String sentence = diagnosis.sentence();
                            if (!sentence.isEmpty() && hasStood) {
                                LOG.log(System.Logger.Level.WARNING, sentence);
                            } else if (!sentence.isEmpty()) {
                                tell.accept(sentence);
                            }
                        },
                        "fila-diagnosis");
        asking.setDaemon(true);
        asking.start();
    }

    void connectNow() {
        channel.resetConnectBackoff();
    }

    /**
     * Leads to where the owner is, if the error is the word of a node that stands by: the next try
     * is there.
     */
    void follow(FilaException error) {
        if (error instanceof NotOwnerException refused && !closed) {
            route.leave(refused.owner());
        }
    }

    /** Leads to all addresses again, where it led to one alone and nobody answers there. */
    boolean widen() {
        return route.widen();
    }

    boolean isClosed() {
        return closed;
    }

    void checkOpen() {
        if (closed) {
            throw closedError();
        }
    }

    static ClientClosedException closedError() {
        return closedError("this client was closed; connect a new one");
    }

    static ClientClosedException closedError(String text) {
        return new ClientClosedException(ErrorDetails.of(Code.CANCELLED, text));
    }

    /**
     * Disconnects; calls still open end as lost. Waits for the connection's threads, not for the
     * program's.
     */
    void close() {
        closed = true;
        channel.shutdownNow();
        boolean interrupted = false;
        try {
            channel.awaitTermination(CLOSE_TIMEOUT_S, TimeUnit.SECONDS);
        } catch (InterruptedException hurry) {
            interrupted = true;
        }
        timers.close();
        threads.close();
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
