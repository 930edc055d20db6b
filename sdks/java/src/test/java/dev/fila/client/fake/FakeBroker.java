package dev.fila.client.fake;

import com.google.protobuf.Any;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import dev.fila.v1.AckBatchRequest;
import dev.fila.v1.ConsumeSessionRequest;
import dev.fila.v1.ConsumeSessionResponse;
import dev.fila.v1.EnqueueRequest;
import dev.fila.v1.EnqueueResponse;
import dev.fila.v1.EnqueueStreamRequest;
import dev.fila.v1.EnqueueStreamResponse;
import dev.fila.v1.FilaAdminGrpc;
import dev.fila.v1.FilaServiceGrpc;
import dev.fila.v1.GetConfigRequest;
import dev.fila.v1.GetConfigResponse;
import dev.fila.v1.ItemStatus;
import dev.fila.v1.LeaseRequest;
import dev.fila.v1.LeaseResponse;
import dev.fila.v1.NackBatchRequest;
import dev.fila.v1.SettleBatchResponse;
import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallExecutorSupplier;
import io.grpc.ServerCallHandler;
import io.grpc.ServerCredentials;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** A broker that says what a test tells it to, over real sockets. */
public final class FakeBroker implements AutoCloseable {
    private static final long WAIT_S = 10;

    /** How unary calls are answered; throw a StatusRuntimeException to refuse. */
    public volatile Function<EnqueueRequest, EnqueueResponse> enqueue =
            request -> EnqueueResponse.newBuilder().setMessageId("id-1").setOffset(1).build();

    public volatile Function<GetConfigRequest, GetConfigResponse> getConfig =
            request -> GetConfigResponse.getDefaultInstance();
    public volatile Function<LeaseRequest, LeaseResponse> lease =
            request -> LeaseResponse.getDefaultInstance();
    public volatile Function<AckBatchRequest, SettleBatchResponse> ackBatch =
            request -> allWell(request.getItemsCount());
    public volatile Function<NackBatchRequest, SettleBatchResponse> nackBatch =
            request -> allWell(request.getItemsCount());

    /** The headers of every call, in order. */
    public final List<Metadata> headers = new CopyOnWriteArrayList<>();

    private final BlockingQueue<FakeStream<EnqueueStreamRequest, EnqueueStreamResponse>> producers =
            new LinkedBlockingQueue<>();
    private final BlockingQueue<FakeStream<ConsumeSessionRequest, ConsumeSessionResponse>>
            sessions = new LinkedBlockingQueue<>();
    private final ServerCredentials credentials;
    private final KeptPort port = new KeptPort();
    private Server server;

    public FakeBroker() {
        this(InsecureServerCredentials.create());
    }

    public FakeBroker(ServerCredentials credentials) {
        this.credentials = credentials;
        server = listen();
    }

    private Server listen() {
        try {
            return Grpc.newServerBuilderForPort(port.number(), credentials)
                    .addService(new Service())
                    .addService(new Admin())
                    .intercept(new HeaderKeeper())
                    .callExecutor(new StreamsInOrder())
                    .permitKeepAliveTime(1, TimeUnit.SECONDS)
                    .permitKeepAliveWithoutCalls(true)
                    .maxInboundMessageSize(80 << 20)
                    .build()
                    .start();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    public String address() {
        return "localhost:" + port.number();
    }

    /** The next stream of enqueues that a client opens. */
    public FakeStream<EnqueueStreamRequest, EnqueueStreamResponse> producer() {
        return next(producers);
    }

    /** The next session that a client opens. */
    public FakeStream<ConsumeSessionRequest, ConsumeSessionResponse> session() {
        return next(sessions);
    }

    private static <T> T next(BlockingQueue<T> queue) {
        try {
            T next = queue.poll(WAIT_S, TimeUnit.SECONDS);
            if (next == null) {
                throw new AssertionError("nobody opened a stream");
            }
            return next;
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    /** What a node says that stands by, and knows this owner; empty where it knows none. */
    public StatusRuntimeException notOwner(String owner) {
        ErrorInfo.Builder info = ErrorInfo.newBuilder().setDomain("fila").setReason("NOT_OWNER");
        if (!owner.isEmpty()) {
            info.putMetadata("owner", owner);
        }
        return StatusProto.toStatusRuntimeException(
                com.google.rpc.Status.newBuilder()
                        .setCode(Status.Code.UNAVAILABLE.value())
                        .setMessage("this node stands by")
                        .addDetails(Any.pack(info.build()))
                        .build());
    }

    /** How the broker refuses: a status, and its reason in the details. */
    public StatusRuntimeException refusal(Status status, String reason, String text) {
        return refusal(status, reason, text, Duration.ZERO);
    }

    /** The same with a wait that it suggests. */
    public StatusRuntimeException refusal(
            Status status, String reason, String text, Duration retryAfter) {
        com.google.rpc.Status.Builder details =
                com.google.rpc.Status.newBuilder()
                        .setCode(status.getCode().value())
                        .setMessage(text)
                        .addDetails(
                                Any.pack(
                                        ErrorInfo.newBuilder()
                                                .setDomain("fila")
                                                .setReason(reason)
                                                .build()));
        if (!retryAfter.isZero()) {
            details.addDetails(
                    Any.pack(
                            RetryInfo.newBuilder()
                                    .setRetryDelay(
                                            com.google.protobuf.Duration.newBuilder()
                                                    .setNanos(retryAfter.getNano()))
                                    .build()));
        }
        return StatusProto.toStatusRuntimeException(details.build());
    }

    /** Breaks every connection, as a broker does that is killed. */
    public void kill() {
        server.shutdownNow();
        try {
            server.awaitTermination(WAIT_S, TimeUnit.SECONDS);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    /** Listens again at the same address. */
    public void restart() {
        server = listen();
    }

    @Override
    public void close() {
        kill();
        port.close();
    }

    private static SettleBatchResponse allWell(int count) {
        SettleBatchResponse.Builder response = SettleBatchResponse.newBuilder();
        for (int i = 0; i < count; i++) {
            response.addResults(ItemStatus.getDefaultInstance());
        }
        return response.build();
    }

    private static <Q, A> void answer(Function<Q, A> how, Q request, StreamObserver<A> to) {
        try {
            to.onNext(how.apply(request));
            to.onCompleted();
        } catch (RuntimeException refusal) {
            to.onError(refusal);
        }
    }

    private final class Service extends FilaServiceGrpc.FilaServiceImplBase {
        @Override
        public void enqueue(EnqueueRequest request, StreamObserver<EnqueueResponse> to) {
            answer(enqueue, request, to);
        }

        @Override
        public StreamObserver<EnqueueStreamRequest> enqueueStream(
                StreamObserver<EnqueueStreamResponse> to) {
            return new FakeStream<>(to, producers, any -> false);
        }

        @Override
        public StreamObserver<ConsumeSessionRequest> consumeSession(
                StreamObserver<ConsumeSessionResponse> to) {
            return new FakeStream<>(to, sessions, ConsumeSessionRequest::hasClose);
        }

        @Override
        public void lease(LeaseRequest request, StreamObserver<LeaseResponse> to) {
            answer(lease, request, to);
        }

        @Override
        public void ackBatch(AckBatchRequest request, StreamObserver<SettleBatchResponse> to) {
            answer(ackBatch, request, to);
        }

        @Override
        public void nackBatch(NackBatchRequest request, StreamObserver<SettleBatchResponse> to) {
            answer(nackBatch, request, to);
        }
    }

    private final class Admin extends FilaAdminGrpc.FilaAdminImplBase {
        @Override
        public void getConfig(GetConfigRequest request, StreamObserver<GetConfigResponse> to) {
            answer(getConfig, request, to);
        }
    }

    /**
     * Streams are heard on the connection's own thread. On another, gRPC drops what came just
     * before the client broke its stream off, which the broker itself hears.
     */
    private static final class StreamsInOrder implements ServerCallExecutorSupplier {
        @Override
        public <Q, A> @Nullable Executor getExecutor(ServerCall<Q, A> call, Metadata metadata) {
            boolean isStream = call.getMethodDescriptor().getType() == MethodType.BIDI_STREAMING;
            return isStream ? Runnable::run : null;
        }
    }

    private final class HeaderKeeper implements ServerInterceptor {
        @Override
        public <Q, A> ServerCall.Listener<Q> interceptCall(
                ServerCall<Q, A> call, Metadata metadata, ServerCallHandler<Q, A> next) {
            headers.add(metadata);
            return next.startCall(call, metadata);
        }
    }
}
