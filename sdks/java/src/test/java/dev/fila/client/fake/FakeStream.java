package dev.fila.client.fake;

import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/** A stream as the fake broker sees it: what came up, in order, and what the test sends down. */
public final class FakeStream<Q, A> implements StreamObserver<Q> {
    private static final long WAIT_S = 10;

    private final StreamObserver<A> down;
    private final Predicate<Q> isLast;
    private final BlockingQueue<Q> up = new LinkedBlockingQueue<>();

    FakeStream(
            StreamObserver<A> down, BlockingQueue<FakeStream<Q, A>> opened, Predicate<Q> isLast) {
        this.down = down;
        this.isLast = isLast;
        opened.add(this);
    }

    /** The next thing the client says. */
    public Q next() {
        return next(any -> true);
    }

    /** The next of a kind; what comes before it is passed over. */
    public Q next(Predicate<Q> wanted) {
        try {
            while (true) {
                Q request = up.poll(WAIT_S, TimeUnit.SECONDS);
                if (request == null) {
                    throw new AssertionError("the client said nothing of the kind");
                }
                if (wanted.test(request)) {
                    return request;
                }
            }
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    /** What the client has said up to now and nobody has looked at. */
    public List<Q> drain() {
        List<Q> all = new ArrayList<>();
        up.drainTo(all);
        return all;
    }

    public synchronized void send(A response) {
        down.onNext(response);
    }

    /** Ends the stream well. */
    public synchronized void end() {
        down.onCompleted();
    }

    /** Ends the stream with an error. */
    public synchronized void fail(Throwable error) {
        down.onError(error);
    }

    @Override
    public void onNext(Q request) {
        up.add(request);
        if (isLast.test(request)) {
            end();
        }
    }

    @Override
    public void onError(Throwable broken) {}

    @Override
    public void onCompleted() {}
}
