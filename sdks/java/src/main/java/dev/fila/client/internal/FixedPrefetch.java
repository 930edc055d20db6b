package dev.fila.client.internal;

import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/** A window of one size, whatever happens. Handling times are noted for who asks. */
public final class FixedPrefetch implements PrefetchControl {
    private final int window;
    private final HandlingTimes times = new HandlingTimes();

    /** A window of so many messages. */
    public FixedPrefetch(int window) {
        this.window = window;
    }

    @Override
    public HandlingTimes times() {
        return times;
    }

    @Override
    public boolean acksFirst() {
        return false;
    }

    @Override
    public int window() {
        return window;
    }

    @Override
    public OptionalLong checkAtUs() {
        return OptionalLong.empty();
    }

    @Override
    public @Nullable Decision joined(long nowUs, long loop, int size) {
        return null;
    }

    @Override
    public @Nullable Decision left(long nowUs, long loop) {
        return null;
    }

    @Override
    public @Nullable Decision delivered(long nowUs, int count) {
        return null;
    }

    @Override
    public void began(long nowUs, long loop, int count) {}

    @Override
    public @Nullable Decision settled(long nowUs, long loop, int count) {
        return null;
    }

    @Override
    public void answered(long nowUs, long loop) {}

    @Override
    public void dropped(int count) {}

    @Override
    public @Nullable Decision idle(long nowUs, long loop) {
        return null;
    }

    @Override
    public @Nullable Decision handled(
            long nowUs, long handlingUs, @Nullable Long asking, @Nullable Long afterUs) {
        times.add(handlingUs);
        return null;
    }

    @Override
    public @Nullable Decision tick(long nowUs) {
        return null;
    }
}
