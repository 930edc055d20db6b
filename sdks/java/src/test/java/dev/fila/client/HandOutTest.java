package dev.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.Test;

/**
 * When a loop that waits for messages is idle. Each look of the loop plays the next step of a
 * story.
 */
class HandOutTest {
    private static final Duration IDLE = Duration.ofNanos(10_000);

    private final ManualTimers timers = new ManualTimers();
    private final Queue<Runnable> story = new ArrayDeque<>();
    private boolean heard = true;
    private final HandOut handOut =
            new HandOut(
                    new ReentrantLock(),
                    Prefetch.of(10).newControl(),
                    timers,
                    Runnable::run,
                    new Story());

    private final class Story implements HandOut.Stream {
        @Override
        public boolean isOver() {
            return false;
        }

        @Override
        public boolean mayHandOut() {
            story.remove().run();
            return heard;
        }

        @Override
        public void askWhetherHeard() {}

        @Override
        public boolean isWritten() {
            return true;
        }

        @Override
        public void tellWindow(int window, List<Long> giveBack) {}

        @Override
        public void tellBegun(List<Long> leases) {}
    }

    private void pass(long nanos) {
        timers.advance(Duration.ofNanos(nanos));
    }

    private void assertIdleAtTheEnd() throws InterruptedException {
        Loop waiting = handOut.holding.join(1);
        assertEquals(List.of(), handOut.take(waiting, 1, null, IDLE));
        assertEquals(0, story.size(), "it stopped too early");
    }

    @Test
    void timeInWhichTheBrokerIsNotHeardIsNotIdle() throws InterruptedException {
        heard = false;
        story.add(() -> pass(60_000));
        story.add(() -> pass(60_000));
        story.add(
                () -> {
                    heard = true;
                    pass(9_999);
                });
        story.add(() -> pass(1));
        assertIdleAtTheEnd();
    }

    @Test
    void whatOtherLoopsGotKeepsALoopFromBeingIdle() throws InterruptedException {
        Loop other = handOut.holding.join(1);
        story.add(() -> {});
        story.add(
                () -> {
                    pass(6_000);
                    Settler settler = null; // settles nothing
                    handOut.deliver(
                            List.of(
                                    new Message(
                                            OpenedSessionTest.message(1, false),
                                            settler,
                                            Long.MAX_VALUE)));
                    handOut.holding.take(other, 1, true);
                });
        story.add(() -> pass(6_000));
        story.add(() -> pass(4_000));
        assertIdleAtTheEnd();
    }
}
